"""Correct programs on one device."""

import functools
import math

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import (
    ShapeDtypeStruct,
    checkpoint,
    custom_jvp,
    debug,
    grad,
    hessian,
    jacfwd,
    jit,
    jvp,
    lax,
    nn,
    random,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from tests.units.insight.checks.corpus import correct

X = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(4, 3)
V = np.float32([1, 2, 3])
BATCH = np.ones((16, 8), np.float32)


def mlp_params(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (m, n)) / math.sqrt(m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def mlp(params, x):
    for layer in params[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


# ---- models -------------------------------------------------------------------------------------


@correct
def initialization():
    return lambda key: mlp_params(key, (8, 16, 16, 4)), (random.key(0),)


@correct
def classifier():
    def step(params, x, labels):
        def loss(p):
            logits = mlp(p, x)
            return -jnp.mean(jnp.sum(nn.log_softmax(logits) * nn.one_hot(labels, 4), -1))

        value, g = value_and_grad(loss)(params)
        return tree.map(lambda p, g: p - 0.1 * g, params, g), value

    return jit(step), (mlp_params(random.key(0), (8, 16, 4)), BATCH, np.zeros(16, np.int32))


@correct
def convolutions():
    def loss(params, images, labels):
        x = images
        for k in params["kernels"]:
            x = lax.conv_general_dilated(
                x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = nn.gelu(x)
        logits = x.mean((1, 2)) @ params["out"]
        return -nn.log_softmax(logits)[jnp.arange(labels.shape[0]), labels].mean()

    params = {
        "kernels": [np.ones((3, 3, 1, 4), np.float32), np.ones((3, 3, 4, 4), np.float32)],
        "out": np.ones((4, 10), np.float32),
    }
    return jit(grad(loss)), (params, np.ones((2, 8, 8, 1), np.float32), np.int32([1, 2]))


@correct
def recurrent_network_in_a_scan():
    def loss(w, xs):
        def cell(h, x):
            h = jnp.tanh(w @ h + x)
            return h, h

        _, hs = lax.scan(cell, jnp.zeros(3), xs)
        return jnp.mean(hs**2)

    return grad(loss), (np.eye(3, dtype=np.float32), np.ones((300, 3), np.float32))


@correct
def gated_unit():
    def cell(p, h, x):
        z = nn.sigmoid(x @ p["wz"] + h @ p["uz"])
        r = nn.sigmoid(x @ p["wr"] + h @ p["ur"])
        n = jnp.tanh(x @ p["wn"] + (r * h) @ p["un"])
        return (1 - z) * n + z * h

    def loss(p, xs):
        h = jnp.zeros((4, 3))
        for x in xs:
            h = cell(p, h, x)
        return jnp.sum(h**2)

    eye = np.eye(3, dtype=np.float32)
    params = dict.fromkeys(("wz", "uz", "wr", "ur", "wn", "un"), eye)
    return jit(grad(loss)), (params, np.ones((6, 4, 3), np.float32))


@correct
def attention_in_bfloat16():
    def attend(q, k, v):
        scores = jnp.einsum("bqd,bkd->bqk", q, k) * q.shape[-1] ** -0.5
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(mask, scores.astype(jnp.float32), -1e9)
        return nn.softmax(scores).astype(q.dtype) @ v

    x = ShapeDtypeStruct((2, 16, 8), "bfloat16")
    return jit(attend), (x, x, x)


@correct
def layer_norm_in_mixed_precision():
    def norm(x, scale):
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-6)
        return (y * scale).astype(x.dtype)

    x = ShapeDtypeStruct((4, 8), "bfloat16")
    return jit(grad(lambda x, s: norm(x, s).astype(jnp.float32).sum(), argnums=(0, 1))), (
        x, np.ones(8, np.float32),
    )  # fmt: skip


@correct
def master_weights():
    def step(master, x):
        def loss(p):
            half = tree.map(lambda a: a.astype(jnp.bfloat16), p)
            return jnp.mean((x.astype(jnp.bfloat16) @ half["w"]).astype(jnp.float32) ** 2)

        g = grad(loss)(master)
        return tree.map(lambda p, g: p - 0.01 * g, master, g)

    return jit(step, donate_argnums=0), ({"w": np.ones((8, 4), np.float32)}, BATCH)


@correct
def transformer_block():
    def block(p, x):
        h = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        q, k, v = jnp.split(h @ p["qkv"], 3, axis=-1)
        weights = nn.softmax(q @ jnp.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
        x = x + weights @ v @ p["out"]
        return x + nn.gelu(x @ p["up"]) @ p["down"]

    def loss(layers, x):
        out, _ = lax.scan(lambda x, p: (checkpoint(block)(p, x), None), x, layers)
        return jnp.mean(out**2)

    ones = functools.partial(np.ones, dtype=np.float32)
    layers = {"qkv": ones((4, 8, 24)), "out": ones((4, 8, 8)), "up": ones((4, 8, 32)),
              "down": ones((4, 32, 8))}  # fmt: skip
    return jit(value_and_grad(loss)), (layers, ones((2, 5, 8)))


@correct
def layers_in_a_python_loop():
    def loss(ws, x):
        for w in ws:
            x = x + jnp.tanh(x @ w)
        return jnp.mean(x**2)

    return jit(grad(loss)), ([np.eye(8, dtype=np.float32)] * 48, BATCH)


@correct
def many_parameters():
    def step(params, grads):
        return tree.map(lambda p, g: p - 0.01 * (g + 1e-4 * p), params, grads)

    params = [np.ones(4, np.float32)] * 600
    return jit(step), (params, params)


@correct
def variational_autoencoder():
    def loss(p, key, x):
        h = jnp.tanh(x @ p["enc"])
        mean, log_var = h @ p["mean"], h @ p["var"]
        z = mean + jnp.exp(0.5 * log_var) * random.normal(key, mean.shape)
        out = nn.sigmoid(z @ p["dec"])
        reconstruction = jnp.mean((out - x) ** 2)
        kl = -0.5 * jnp.mean(1 + log_var - mean**2 - jnp.exp(log_var))
        return reconstruction + kl

    ones = functools.partial(np.ones, dtype=np.float32)
    p = {"enc": ones((8, 8)), "mean": ones((8, 2)), "var": ones((8, 2)), "dec": ones((2, 8))}
    return jit(value_and_grad(loss)), (p, random.key(0), BATCH)


@correct
def adversarial_pair():
    def step(g, d, key, real):
        k1, k2 = random.split(key)

        def loss_d(d):
            fake = jnp.tanh(random.normal(k1, real.shape) @ g)
            return -jnp.mean(nn.log_sigmoid(real @ d) + nn.log_sigmoid(-(fake @ d)))

        def loss_g(g):
            return -jnp.mean(nn.log_sigmoid(jnp.tanh(random.normal(k2, real.shape) @ g) @ d))

        return g - 0.1 * grad(loss_g)(g), d - 0.1 * grad(loss_d)(d)

    return jit(step), (np.eye(8, dtype=np.float32), np.ones(8, np.float32), random.key(0), BATCH)


@correct
def policy_gradient():
    def loss(w, states, actions, returns):
        logits = states @ w
        logp = jnp.take_along_axis(nn.log_softmax(logits), actions[:, None], axis=1)[:, 0]
        advantages = (returns - returns.mean()) / (returns.std() + 1e-8)
        entropy = -jnp.sum(nn.softmax(logits) * nn.log_softmax(logits), -1).mean()
        return -jnp.mean(logp * lax.stop_gradient(advantages)) - 0.01 * entropy

    return jit(grad(loss)), (
        np.ones((8, 3), np.float32), BATCH, np.zeros(16, np.int32), np.ones(16, np.float32),
    )  # fmt: skip


# ---- randomness ---------------------------------------------------------------------------------


@correct
def keys_carried_through_a_loop():
    def walk(key, x):
        def step(carry, _):
            key, x = carry
            key, sub = random.split(key)
            return (key, x + random.normal(sub, x.shape)), x

        return lax.scan(step, (key, x), None, length=10)

    return walk, (random.key(0), V)


@correct
def keys_folded_in_a_loop():
    def f(key, x):
        def body(i, x):
            return x + random.normal(random.fold_in(key, i), x.shape)

        return lax.fori_loop(0, 10, body, x)

    return jit(f), (random.key(0), V)


@correct
def one_key_in_two_branches():
    def f(key, x, noisy):
        return lax.cond(
            noisy,
            lambda: x + random.normal(key, x.shape),
            lambda: x + random.uniform(key, x.shape),
        )

    return f, (random.key(0), V, np.bool_(True))


@correct
def old_keys_split():
    def f(key):
        key, a = random.split(key)
        key, b = random.split(key)
        return random.normal(a, (2,)) + random.gamma(b, 2.0, (2,)), key

    return f, (random.PRNGKey(0),)


@correct
def keys_by_step_and_layer():
    def apply(params, x, key):
        for i, w in enumerate(params):
            x = jnp.tanh(x @ w)
            keep = random.bernoulli(random.fold_in(key, i), 0.8, x.shape)
            x = jnp.where(keep, x / 0.8, 0.0)
        return x

    return jit(apply), ([np.eye(3, dtype=np.float32)] * 3, X, random.key(0))


@correct
def shuffled_batches():
    def epoch(key, x):
        order = random.permutation(key, x.shape[0])
        return x[order].reshape(2, 2, 3)

    return epoch, (random.key(0), X)


@correct
def bootstrap():
    def mean(key, x):
        return random.choice(key, x, x.shape[:1]).mean()

    return lambda key, x: vmap(mean, (0, None))(random.split(key, 100), x), (random.key(0), V)


@correct
def keys_reused_on_purpose():
    def common_random_numbers(key, a, b):
        noise = random.normal(key, (100,))
        return jnp.mean(jnp.exp(a * noise) - jnp.exp(b * noise))

    return common_random_numbers, (random.key(0), np.float32(1), np.float32(2))


@correct
def many_distributions():
    def draw(key):
        ks = random.split(key, 8)
        return (
            random.beta(ks[0], 2.0, 3.0), random.poisson(ks[1], 3.0), random.dirichlet(ks[2], V),
            random.truncated_normal(ks[3], -1.0, 1.0), random.multivariate_normal(
                ks[4], jnp.zeros(2), jnp.eye(2)),
            random.randint(ks[5], (3,), 0, 10), random.t(ks[6], 3.0), random.choice(ks[7], 5, (2,)),
        )  # fmt: skip

    return draw, (random.key(0),)


@correct
def other_generator():
    def f(key):
        a, b = random.split(key)
        return random.normal(a, (3,)) + random.uniform(b, (3,))

    return f, (random.key(0, impl="rbg"),)


# ---- derivatives --------------------------------------------------------------------------------


@correct
def safe_root():
    def f(x):
        safe = jnp.where(x > 0, x, 1.0)
        return jnp.sum(jnp.where(x > 0, jnp.sqrt(safe), 0.0))

    return grad(f), (V,)


@correct
def norm_with_epsilon():
    def normalize(x):
        return x / jnp.sqrt(jnp.sum(x**2, -1, keepdims=True) + 1e-12)

    return grad(lambda x: jnp.sum(normalize(x)[..., 0])), (X,)


@correct
def distances_squared():
    def energy(p):
        d2 = jnp.sum((p[:, None] - p[None]) ** 2, -1)
        return jnp.sum(jnp.exp(-d2))

    return jit(grad(energy)), (X,)


@correct
def masked_mean():
    def loss(x, mask):
        return jnp.sum(jnp.where(mask, x**2, 0.0)) / jnp.maximum(mask.sum(), 1)

    return grad(loss), (V, np.array([True, False, True]))


@correct
def masked_ratio():
    def loss(x, lengths, mask):
        per_token = x / (1.0 + lengths)
        return jnp.where(mask, per_token, 0.0).sum()

    return grad(loss), (V, V, np.array([True, False, True]))


@correct
def masked_softmax():
    def loss(scores, mask):
        weights = nn.softmax(jnp.where(mask, scores, -jnp.inf))
        return jnp.sum(jnp.where(mask, weights * scores, 0.0))

    return grad(loss), (X, np.ones((4, 3), bool))


@correct
def leaky_and_elu():
    def f(x):
        a = jnp.where(x > 0, x, 0.01 * x)
        b = jnp.where(x > 0, x, jnp.expm1(x))
        return jnp.sum(a * b + nn.elu(x) + nn.leaky_relu(x) + nn.softplus(x))

    return grad(f), (V,)


@correct
def huber():
    def huber(r):
        a = jnp.abs(r)
        return jnp.where(a <= 1.0, 0.5 * r**2, a - 0.5)

    return grad(lambda w, x: jnp.mean(huber(x @ w))), (V, X)


@correct
def root_of_positive_numbers():
    def log_likelihood(scale, x):
        return jnp.sum(-0.5 * (x / scale) ** 2 - jnp.log(scale)) + jnp.sqrt(scale)

    return grad(log_likelihood), (np.float32(2), X)


@correct
def norm_that_is_not_differentiated():
    def clip(g):
        norm = jnp.linalg.norm(g)
        return g * jnp.minimum(1.0, 1.0 / (norm + 1e-6))

    return lambda w, x: w - clip(grad(lambda w: jnp.sum((x @ w) ** 2))(w)), (V, X)


@correct
def newton():
    def f(w, x):
        def loss(w):
            return jnp.mean(jnp.log1p(jnp.exp(-(x @ w)))) + 0.1 * jnp.sum(w**2)

        return w - jnp.linalg.solve(hessian(loss)(w), grad(loss)(w))

    return jit(f), (V, X)


@correct
def hessian_vector_product():
    def hvp(f, x, v):
        return jvp(grad(f), (x,), (v,))[1]

    return lambda x, v: hvp(lambda x: jnp.sum(jnp.sin(x) ** 2), x, v), (V, V)


@correct
def gauss_newton():
    def f(w, x):
        r, pull = vjp(lambda w: jnp.tanh(x @ w), w)
        j = jacfwd(lambda w: jnp.tanh(x @ w))(w)
        return jnp.linalg.solve(j.T @ j + 1e-3 * jnp.eye(3), pull(r)[0])

    return f, (V, X)


@correct
def own_rule():
    @custom_jvp
    def safe_log(x):
        return jnp.log(jnp.maximum(x, 1e-20))

    safe_log.defjvp(lambda primals, tangents: (safe_log(*primals), tangents[0] / (primals[0] + 1)))
    return grad(lambda x: jnp.sum(jnp.where(x > 0, safe_log(x), 0.0))), (V,)


@correct
def per_example_gradients():
    def f(w, x):
        g = vmap(grad(lambda w, row: jnp.tanh(row @ w)), (None, 0))(w, x)
        norms = jnp.sqrt(jnp.sum(g**2, -1, keepdims=True))
        return jnp.mean(g / jnp.maximum(norms, 1.0), 0)

    return jit(f), (V, X)


# ---- arrays, loops, memory ----------------------------------------------------------------------


@correct
def histogram():
    return lambda i: jnp.zeros(5).at[i].add(1.0), (np.int32([0, 0, 3]),)


@correct
def unique_places():
    return lambda x, v: x.at[jnp.array([0, 2])].set(v), (V, np.float32([7, 8]))


@correct
def same_number_everywhere():
    return lambda x: x.at[jnp.array([0, 0, 1])].set(0.0), (V,)


@correct
def largest_of_groups():
    def f(x):
        return jnp.full(2, -jnp.inf).at[jnp.array([0, 0, 1])].max(x)

    return f, (V,)


@correct
def segments():
    return lambda x: phalanx.ops.segment_sum(x, jnp.array([0, 0, 1]), 2), (V,)


@correct
def a_permutation_and_back():
    def f(x, key):
        order = random.permutation(key, len(x))
        return jnp.zeros_like(x).at[order].set(x).at[jnp.argsort(order)].multiply(2.0)

    return f, (V, random.key(0))


@correct
def rows_into_a_ring():
    def f(ring, rows, start):
        return ring.at[(start + jnp.arange(len(rows))) % len(ring)].set(rows)

    return f, (np.zeros((8, 3), np.float32), X, np.int32(6))


@correct
def rows_that_are_said_to_be_different():
    def f(memory, nodes, messages):
        return memory.at[nodes].set(0.9 * memory[nodes] + messages, unique_indices=True)

    return f, (BATCH, np.int32([3, 1]), np.ones((2, 8), np.float32))


@correct
def places_that_are_computed_beforehand():
    cells = jnp.array([0.5, 1.5, 2.5])
    return lambda x, v: x.at[jnp.floor(cells).astype(int)].set(v), (V, V)


@correct
def one_entry_of_a_table():
    def f(table, state, reward):
        return table.at[state % 7].set(table[state % 7] + 0.1 * reward)

    return f, (np.zeros(7, np.float32), np.int32(9), np.float32(1))


@correct
def diagonal():
    return lambda a: a.at[jnp.arange(3), jnp.arange(3)].set(V), (np.zeros((3, 3), np.float32),)


@correct
def message_passing():
    senders, receivers = np.int32([0, 1, 2, 2]), np.int32([1, 2, 0, 1])

    def layer(w, h):
        messages = jnp.tanh(h[senders] @ w)
        return h + jnp.zeros_like(h).at[receivers].add(messages)

    return jit(grad(lambda w, h: jnp.sum(layer(w, h) ** 2))), (np.eye(3, dtype=np.float32), X[:3])


@correct
def small_captured_arrays():
    features, targets = np.ones((1000, 20), np.float32), np.ones(1000, np.float32)
    return jit(grad(lambda w: jnp.mean((features @ w - targets) ** 2))), (np.ones(20, np.float32),)


@correct
def donated_state():
    def step(params, opt, x):
        g = grad(lambda p: jnp.mean((x @ p) ** 2))(params)
        opt = 0.9 * opt + g
        return params - 0.1 * opt, opt

    big = ShapeDtypeStruct((2048, 4096), "float32")
    return jit(step, donate_argnums=(0, 1)), (big, big, ShapeDtypeStruct((8, 2048), "float32"))


@correct
def large_arrays_without_state():
    big = ShapeDtypeStruct((4096, 4096), "float32")
    return jit(lambda a, b: jnp.tanh(a @ b)), (big, big)


@correct
def donated_and_used():
    return jit(lambda x, y: (x + y, x.sum()), donate_argnums=0), (X, X)


@correct
def prints_outside_loops():
    def f(x):
        y = lax.scan(lambda c, _: (c * 0.9, None), x, None, length=100)[0]
        debug.print("final {}", y)
        return y

    return jit(f), (V,)


@correct
def prints_sometimes():
    def f(x):
        def step(c, i):
            lax.cond(i % 100 == 0, lambda: debug.print("step {}", i), lambda: None)
            return c * 0.9, None

        return lax.scan(step, x, jnp.arange(1000))[0]

    return jit(f), (V,)


@correct
def short_python_loops():
    def f(x):
        for _ in range(10):
            for _ in range(4):
                x = x + 0.1 * jnp.sin(x) * jnp.cos(x)
        return x

    return f, (V,)


@correct
def double_precision():
    def f(x):
        with phalanx.enable_x64(True):
            y = x.astype(jnp.float64)
            return jnp.sum(y * y)

    return f, (V,)


@correct
def converted_and_scaled():
    image = ShapeDtypeStruct((8, 8), "float16")
    return jit(lambda image: image.astype(jnp.float32) / 255), (image,)


@correct
def numbers_of_numpy_with_float32():
    return jit(lambda x: x / np.sqrt(3.0) + np.float32(1) * np.pi), (V,)


@correct
def integers_and_floats():
    return jit(lambda n, x: x * n + n / 2 + 1), (np.int32(3), V)


@correct
def step_counter():
    def step(state):
        return {"t": state["t"] + 1, "x": state["x"] * 0.5}

    return jit(step), ({"t": 0, "x": V},)


# ---- science ------------------------------------------------------------------------------------


@correct
def pendulum():
    def simulate(theta):
        def step(s, _):
            theta, omega = s
            omega = omega - 0.01 * jnp.sin(theta)
            return (theta + 0.01 * omega, omega), theta

        return lax.scan(step, (theta, jnp.zeros_like(theta)), None, length=1000)[1]

    return simulate, (V,)


@correct
def game_of_life():
    def step(board):
        around = [jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        neighbors = sum(around) - board
        return ((neighbors == 3) | ((board == 1) & (neighbors == 2))).astype(board.dtype)

    return jit(lambda b: lax.fori_loop(0, 50, lambda _, b: step(b), b)), (
        np.zeros((16, 16), np.int32),
    )


@correct
def kalman_filter():
    def update(state, z):
        x, p = state
        s = p + 0.1 * jnp.eye(3)
        gain = jnp.linalg.solve(s, p).T
        x = x + gain @ (z - x)
        return (x, (jnp.eye(3) - gain) @ p + 0.01 * jnp.eye(3)), x

    return jit(lambda zs: lax.scan(update, (jnp.zeros(3), jnp.eye(3)), zs)), (X,)


@correct
def gaussian_process():
    def nll(theta, x, y):
        d2 = jnp.sum((x[:, None] - x[None]) ** 2, -1)
        k = jnp.exp(theta[0]) * jnp.exp(-d2 / jnp.exp(theta[1])) + 0.1 * jnp.eye(4)
        chol = jnp.linalg.cholesky(k)
        alpha = phalanx.scipy.linalg.cho_solve((chol, True), y)
        return 0.5 * y @ alpha + jnp.sum(jnp.log(jnp.diag(chol)))

    return jit(grad(nll)), (np.zeros(2, np.float32), X, X[:, 0])


@correct
def conjugate_gradients():
    def solve(a, b):
        def more(s):
            return jnp.vdot(s[1], s[1]) > 1e-6

        def step(s):
            x, r, p = s
            ap = a @ p
            alpha = jnp.vdot(r, r) / jnp.vdot(p, ap)
            new = r - alpha * ap
            return x + alpha * p, new, new + jnp.vdot(new, new) / jnp.vdot(r, r) * p

        return lax.while_loop(more, step, (jnp.zeros_like(b), b, b))[0]

    return jit(solve), (np.eye(3, dtype=np.float32), V)


@correct
def expectation_maximization():
    def step(state, x):
        means, weights = state
        logits = -0.5 * jnp.sum((x[:, None] - means) ** 2, -1) + jnp.log(weights)
        r = nn.softmax(logits)
        count = r.sum(0)
        return (r.T @ x / count[:, None], count / x.shape[0])

    return jit(lambda s, x: lax.fori_loop(0, 20, lambda _, s: step(s, x), s)), (
        (X[:2], np.float32([0.5, 0.5])), X,
    )  # fmt: skip


@correct
def fourier_filter():
    def f(x):
        spectrum = jnp.fft.rfft(x)
        return jnp.fft.irfft(jnp.where(jnp.arange(9) < 4, spectrum, 0), 16)

    return jit(grad(lambda x: jnp.sum(f(x) ** 2))), (np.ones(16, np.float32),)


@correct
def viterbi():
    def best(scores, transitions):
        def step(s, row):
            every = s[:, None] + transitions
            return every.max(0) + row, every.argmax(0)

        return lax.scan(step, scores[0], scores[1:])

    return jit(best), (X, np.eye(3, dtype=np.float32))


@correct
def projectile_by_bisection():
    def height(angle):
        return jnp.sin(angle) * 10 - 5.0

    def solve():
        def step(_, bounds):
            low, high = bounds
            middle = (low + high) / 2
            below = height(middle) < 0
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        return lax.fori_loop(0, 30, step, (0.0, 1.5))

    return jit(solve), ()


@correct
def lennard_jones_with_a_cutoff():
    i, j = np.triu_indices(4, 1)

    def energy(positions):
        r2 = jnp.sum((positions[i] - positions[j]) ** 2, axis=-1)
        inverse = (1.0 / r2) ** 3
        return jnp.sum(jnp.where(r2 < 2.5**2, 4 * (inverse**2 - inverse), 0.0))

    return jit(grad(energy)), (X,)


@correct
def stable_softplus():
    def softplus(x):
        return jnp.where(x > 20, x, jnp.log(1 + jnp.exp(jnp.minimum(x, 20.0))))

    return grad(lambda x: softplus(x).sum()), (V,)


@correct
def binary_cross_entropy():
    def loss(w, x, y):
        p = jnp.clip(nn.sigmoid(x @ w), 1e-7, 1 - 1e-7)
        return -jnp.mean(jnp.where(y > 0, jnp.log(p), jnp.log(1 - p)))

    return grad(loss), (V, X, np.float32([0, 1, 0, 1]))


@correct
def dropout_in_checkpointed_layers():
    def layer(x, w, key):
        x = jnp.tanh(x @ w)
        return jnp.where(random.bernoulli(key, 0.8, x.shape), x / 0.8, 0.0)

    def loss(ws, x, key):
        for i, w in enumerate(ws):
            x = checkpoint(layer)(x, w, random.fold_in(key, i))
        return jnp.mean(x**2)

    return jit(value_and_grad(loss)), ([np.eye(3, dtype=np.float32)] * 3, X, random.key(0))


@correct
def dropout_in_scanned_checkpointed_layers():
    def loss(ws, x, key):
        @checkpoint
        def layer(x, given):
            w, key = given
            return jnp.tanh(x @ w) * random.bernoulli(key, 0.8, x.shape) / 0.8, None

        return jnp.mean(lax.scan(layer, x, (ws, random.split(key, 3)))[0] ** 2)

    return jit(value_and_grad(loss)), (np.ones((3, 3, 3), np.float32), X, random.key(0))


@correct
def noise_in_a_jitted_loss_of_several_uses():
    @jit
    def loss(w, x, key):
        return jnp.mean((x @ w + random.normal(key, (4,))) ** 2)

    def f(w, x, key):
        return grad(loss)(w, x, key), hessian(loss)(w, x, key)

    def checked(w, x, key):
        k1, k2 = random.split(key)
        return f(w, x, k1)[0], f(w, x, k2)[1]

    return checked, (V, X, random.key(0))


@correct
def stochastic_rounding_with_its_own_rule():
    @phalanx.custom_vjp
    def quantize(x, key):
        return jnp.floor(x + random.uniform(key, x.shape))

    quantize.defvjp(lambda x, key: (quantize(x, key), None), lambda _, g: (g, None))
    return grad(lambda x, key: jnp.sum(quantize(x, key) ** 2)), (V, random.key(0))


@correct
def perturbed_gradient_that_draws_again():
    @custom_jvp
    def noisy(x, key):
        return x * random.normal(key, x.shape)

    @noisy.defjvp
    def rule(primals, tangents):
        x, key = primals
        return noisy(x, key), tangents[0] * random.normal(key, x.shape)

    return grad(lambda x, key: noisy(x, key).sum()), (V, random.key(0))


@correct
def logits_in_float32():
    def logits(w, x):
        return (x @ w).astype(jnp.float32)

    return logits, (ShapeDtypeStruct((8, 8), "bfloat16"), ShapeDtypeStruct((4, 8), "bfloat16"))
