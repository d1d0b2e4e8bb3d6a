"""Mistakes that need no lanes."""

import functools

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import ShapeDtypeStruct, debug, grad, jit, lax, nn, random, tree, value_and_grad, vmap
from tests.units.insight.checks.corpus import faulty

X = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(4, 3)
V = np.float32([1, 2, 3])

# ---- P106: keys used twice ----------------------------------------------------------------------


@faulty("P106")
def two_draws():
    def init(key):
        return {"w": random.normal(key, (3, 4)), "b": random.uniform(key, (4,))}

    return init, (random.key(0),)


@faulty("P106")
def parent_used_after_split():
    @jit
    def sample(key):
        k1, k2 = random.split(key)
        return random.normal(k1) + random.normal(k2) + random.normal(key)

    return sample, (random.key(0),)


@faulty("P106")
def old_keys_in_a_python_loop():
    def init(key):
        return [random.normal(key, (n, n)) for n in (2, 3, 4)]

    return init, (random.PRNGKey(0),)


@faulty("P106")
def one_key_in_a_scan():
    def walk(key, x):
        def step(x, _):
            return x + random.normal(key, x.shape), x

        return lax.scan(step, x, None, length=10)

    return walk, (random.key(0), V)


@faulty("P106")
def split_twice():
    def f(key):
        dropout_key = random.split(key)[1]
        noise_key = random.split(key)[1]
        return random.bernoulli(dropout_key, 0.5, (4,)), random.normal(noise_key, (4,))

    return f, (random.key(0),)


@faulty("P106")
def dropout_in_two_layers():
    def dropout(key, x):
        return jnp.where(random.bernoulli(key, 0.8, x.shape), x / 0.8, 0.0)

    def apply(params, x, key):
        for w in params:
            x = dropout(key, jnp.tanh(x @ w))
        return x

    return jit(apply), ([np.eye(3, dtype=np.float32)] * 2, X, random.key(0))


@faulty("P106")
def same_fold():
    def f(key, x):
        a = random.normal(random.fold_in(key, 1), x.shape)
        b = random.gumbel(random.fold_in(key, 1), x.shape)
        return x + a * b

    return f, (random.key(0), V)


@faulty("P106")
def rng_carried_but_never_changed():
    def sgd(w, key):
        def step(carry, _):
            w, key = carry
            noise = random.normal(key, w.shape)
            return (w - 0.1 * (w + noise), key), None

        (w, _), _ = lax.scan(step, (w, key), None, length=20)
        return w

    return sgd, (V, random.key(7))


@faulty("P106")
def jitted_dropout_twice():
    @jit
    def dropout(x, key):
        return x * random.bernoulli(key, 0.5, x.shape) * 2

    def loss(w, x, key):
        h = dropout(jnp.tanh(x @ w), key)
        return jnp.mean(dropout(jnp.tanh(h @ w), key) ** 2)

    return grad(loss), (np.eye(3, dtype=np.float32), X, random.key(0))


# ---- P109: captured arrays ----------------------------------------------------------------------


@faulty("P109")
def captured_dataset():
    data = np.zeros((20000, 100), np.float32)
    return jit(lambda w: jnp.mean((data @ w) ** 2)), (np.ones(100, np.float32),)


@faulty("P109")
def captured_table():
    table = jnp.zeros((40000, 64))

    def embed(ids):
        return table[ids].sum(-1)

    return embed, (np.int32([1, 2, 3]),)


@faulty("P109")
def captured_by_partial():
    features = np.ones((4096, 512), np.float32)

    def loss(features, w):
        return jnp.sum(nn.relu(features @ w))

    return jit(grad(functools.partial(loss, features))), (np.ones(512, np.float32),)


@faulty("P109")
def captured_in_a_scan():
    kernels = np.ones((2048, 1024), np.float32)

    def f(x):
        return lax.scan(lambda c, _: (jnp.tanh(kernels.T @ (kernels @ c)), None), x, None, 3)[0]

    return f, (np.ones(1024, np.float32),)


# ---- P110: donations of no use ------------------------------------------------------------------


@faulty("P110")
def donated_batch():
    def step(w, batch):
        return w - 0.1 * grad(lambda w: jnp.sum((batch @ w) ** 2))(w)

    return jit(step, donate_argnums=(0, 1)), (V, X)


@faulty("P110")
def donated_to_a_scalar():
    return jit(lambda x: x.sum(), donate_argnums=0), (X,)


@faulty("P110")
def donated_to_another_dtype():
    def quantize(x):
        return jnp.round(x * 127).astype(jnp.int8)

    return jit(quantize, donate_argnames="x"), (X,)


@faulty("P110")
def donated_transposed():
    return phalanx.pmap(lambda x: x.T @ x, donate_argnums=0), (np.ones((8, 4, 3), np.float32),)


# ---- P111: state that is not donated ------------------------------------------------------------

BIG = ShapeDtypeStruct((2048, 4096), "float32")


@faulty("P111")
def sgd_of_large_weights():
    @jit
    def step(params, x):
        g = grad(lambda p: jnp.sum(jnp.tanh(x @ p["w"]) + p["b"]))(params)
        return tree.map(lambda p, g: p - 0.01 * g, params, g)

    params = {"w": BIG, "b": ShapeDtypeStruct((4096,), "float32")}
    return step, (params, ShapeDtypeStruct((8, 2048), "float32"))


@faulty("P111")
def adam():
    def step(params, opt, x):
        m, v = opt
        loss, g = value_and_grad(lambda p: jnp.mean((x @ p) ** 2))(params)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        return params - 1e-3 * m / (jnp.sqrt(v) + 1e-8), (m, v), loss

    return jit(step), (BIG, (BIG, BIG), ShapeDtypeStruct((8, 2048), "float32"))


@faulty("P111")
def key_value_cache():
    def decode(cache, token, index):
        return lax.dynamic_update_slice(cache, token * 2, (index, 0)), token.sum()

    return jit(decode), (BIG, ShapeDtypeStruct((1, 4096), "float32"), np.int32(3))


@faulty("P111")
def wave_equation():
    @jit
    def advance(u, previous):
        laplacian = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u
        return 2 * u - previous + 0.1 * laplacian, u

    return advance, (BIG, BIG)


# ---- P112: wider numbers by accident ------------------------------------------------------------


@faulty("P112")
def numpy_scalar():
    def attend(q, k):
        return nn.softmax(q @ k.T / np.sqrt(q.shape[-1]))

    x = ShapeDtypeStruct((4, 8), "bfloat16")
    return attend, (x, x)


@faulty("P112")
def constant_of_float32():
    gelu_scale = np.float32(0.7978845)

    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(gelu_scale * (x + 0.044715 * x**3)))

    return jit(gelu), (ShapeDtypeStruct((16,), "bfloat16"),)


@faulty("P112")
def mean_of_a_dataset():
    mean = np.float32([0.485, 0.456, 0.406])
    return lambda image: (image - mean) * 2, (ShapeDtypeStruct((32, 32, 3), "float16"),)


@faulty("P112")
def state_that_grows():
    def step(params, x):
        g = grad(lambda p: jnp.sum((x.astype(p.dtype) @ p) ** 2))(params)
        return params - g.astype(jnp.float32) * 0.1

    return jit(step), (ShapeDtypeStruct((3,), "bfloat16"), X)


@faulty("P112")
def default_dtype_with_x64():
    def f(x):
        with phalanx.enable_x64(True):
            return x * jnp.linspace(0, 1, 3)

    return f, (V,)


# ---- P113: the host in a loop -------------------------------------------------------------------


@faulty("P113")
def print_in_a_scan():
    def f(x):
        def step(c, _):
            debug.print("c = {}", c)
            return c * 0.9, None

        return lax.scan(step, x, None, length=1000)

    return f, (V,)


@faulty("P113")
def callback_in_a_while():
    def f(x):
        def step(s):
            debug.callback(lambda v: None, s.sum())
            return s * 0.5

        return lax.while_loop(lambda s: s.sum() > 1e-3, step, x)

    return jit(f), (V,)


@faulty("P113")
def numpy_in_a_loop():
    def f(x):
        def body(i, c):
            y = phalanx.pure_callback(np.sort, ShapeDtypeStruct((3,), "float32"), c)
            return y * 0.5

        return lax.fori_loop(0, 100, body, x)

    return f, (V,)


@faulty("P113")
def progress_of_training():
    def fit(w, x):
        def loss(w):
            return jnp.mean((x @ w) ** 2)

        def epoch(w, i):
            value, g = value_and_grad(loss)(w)
            debug.print("epoch {i}: {v}", i=i, v=value)
            return w - 0.1 * g, value

        return lax.scan(epoch, w, jnp.arange(50))

    return jit(fit), (V, X)


# ---- P114: loops of Python ----------------------------------------------------------------------


@faulty("P114")
def euler_steps():
    def simulate(x):
        for _ in range(400):
            v = jnp.sin(x) - 0.1 * x
            x = x + 0.01 * v
        return x

    return simulate, (V,)


@faulty("P114")
def recurrent_network():
    def rnn(w, xs):
        h = jnp.zeros(3)
        for t in range(300):
            h = jnp.tanh(w @ h + xs[t])
        return h

    return jit(rnn), (np.eye(3, dtype=np.float32), np.ones((300, 3), np.float32))


@faulty("P114")
def gradient_descent_unrolled():
    def inner(w, x):
        for _ in range(256):
            w = w - 0.1 * grad(lambda w: jnp.sum((x @ w) ** 2))(w)
        return w

    return inner, (V, X)


@faulty("P114")
def rows_one_by_one():
    def f(xs):
        out = []
        for i in range(500):
            out.append(jnp.sum(jnp.cos(xs[i]) * 2))
        return jnp.stack(out)

    return f, (np.ones((500, 3), np.float32),)


# ---- P115: the same place twice -----------------------------------------------------------------


@faulty("P115")
def set_with_repeats():
    return lambda x, v: x.at[jnp.array([0, 0, 2])].set(v), (V, V)


@faulty("P115")
def groups_of_two():
    def scatter(v):
        return jnp.zeros(4).at[jnp.arange(8) // 2].set(v)

    return jit(scatter), (np.arange(8, dtype=np.float32),)


@faulty("P115")
def wrapped_around():
    index = np.arange(6) % 4

    def write(buffer, rows):
        return buffer.at[index].set(rows)

    return write, (np.zeros((4, 2), np.float32), np.ones((6, 2), np.float32))


@faulty("P115")
def claimed_unique():
    def f(x, v):
        return x.at[jnp.array([1, 1])].add(v, unique_indices=True)

    return f, (V, np.float32([1, 2]))


# ---- P116: a branch that is not taken -----------------------------------------------------------


@faulty("P116")
def root_where_positive():
    return grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))), (V,)


@faulty("P116")
def ratio_where_defined():
    def loss(a, b):
        return jnp.sum(jnp.where(b != 0, a / b, 0.0))

    return jit(grad(loss, argnums=(0, 1))), (V, V)


@faulty("P116")
def entropy():
    def entropy(p):
        return -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))

    return value_and_grad(entropy), (V / 6,)


@faulty("P116")
def sinc_by_hand():
    def sinc(x):
        return jnp.where(x == 0, 1.0, jnp.sin(x) / x)

    return vmap(grad(sinc)), (V,)


@faulty("P116")
def huber_by_root():
    def step(w, x):
        def loss(w):
            r = jnp.abs(x @ w)
            return jnp.mean(jnp.where(r > 1, jnp.sqrt(r), r**2))

        return w - 0.1 * grad(loss)(w)

    return step, (V, X)


@faulty("P116")
def taylor_near_zero():
    def f(x):
        return jnp.where(jnp.abs(x) < 1e-3, 1 - x**2 / 6, jnp.sin(x) / x)

    return vmap(grad(f)), (V,)


@faulty("P116")
def in_a_scan():
    def total(x):
        def step(c, row):
            return c + jnp.sum(jnp.where(row > 0, 1.0 / row, 0.0)), None

        return lax.scan(step, 0.0, x)[0]

    return grad(total), (X,)


# ---- P117: roots of squares ---------------------------------------------------------------------


@faulty("P117")
def norm_of_a_vector():
    return grad(jnp.linalg.norm), (V,)


@faulty("P117")
def pairwise_distances():
    def energy(p):
        d = p[:, None] - p[None]
        return jnp.sum(jnp.sqrt(jnp.sum(d**2, axis=-1)))

    return jit(grad(energy)), (X,)


@faulty("P117")
def standard_deviation():
    def normalized(x):
        return (x - x.mean()) / (x.std() + 1e-5)

    return grad(lambda w, x: jnp.sum(normalized(x @ w) ** 3)), (V, X)


@faulty("P117")
def weight_normalization():
    def apply(params, x):
        w = params["g"] * params["v"] / jnp.sqrt(jnp.sum(jnp.square(params["v"])))
        return jnp.mean((x @ w) ** 2)

    return value_and_grad(apply), ({"g": np.float32(1), "v": V}, X)


@faulty("P117")
def gradient_penalty():
    def penalty(w, x):
        def critic(x):
            return jnp.sum(jnp.tanh(x @ w))

        g = grad(critic)(x)
        return (jnp.linalg.norm(g) - 1) ** 2

    return grad(penalty), (V, X)
