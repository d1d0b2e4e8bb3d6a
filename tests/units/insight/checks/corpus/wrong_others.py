"""More mistakes, which were written without a look at what is found."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import (
    P,
    ShapeDtypeStruct,
    debug,
    grad,
    io_callback,
    jit,
    lax,
    nn,
    pmap,
    random,
    shard_map,
    tree,
    value_and_grad,
    vmap,
)
from tests.units.insight.checks.corpus import faulty

W = np.ones(3, np.float32)
X = np.ones((8, 4, 3), np.float32)
Y = np.ones((8, 4), np.float32)


def mse(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


def over_the_mesh(step, out_specs):
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("d",))
    return shard_map(step, mesh=mesh, in_specs=(P(), P("d"), P("d")), out_specs=out_specs)


@faulty("P103")
def gradients_that_are_sums_already():
    def step(w, x, y):
        return w - 0.1 * lax.psum(grad(mse)(w, x[0], y[0]), "d")

    return over_the_mesh(step, P()), (W, X, Y)


@faulty("P104")
def mean_of_gradients_that_are_sums_already():
    def step(w, x, y):
        return w - 0.1 * lax.pmean(grad(mse)(w, x[0], y[0]), "d")

    return over_the_mesh(step, P()), (W, X, Y)


@faulty("P103")
def loss_averaged_and_gradients_summed_again():
    def step(w, x, y):
        loss, g = value_and_grad(lambda w: lax.pmean(mse(w, x[0], y[0]), "d"))(w)
        return w - 0.1 * lax.psum(g, "d"), loss

    return over_the_mesh(step, (P(), P())), (W, X, Y)


@faulty("P101")
def sum_in_the_condition():
    def f(x):
        def more(s):
            return lax.psum(s[0], "i").sum() + s[1] > 0

        return lax.while_loop(more, lambda s: (s[0] - 1, s[1] - 1.0), (x, x.sum()))

    return pmap(f, "i"), (X,)


@faulty("P101")
def condition_on_rows():
    def f(x):
        def step(c, r):
            return lax.cond(r.sum() > 0, lambda c: c + lax.pmean(c, "i"), lambda c: c, c), None

        return lax.scan(step, x[0], x)[0]

    return pmap(f, "i"), (X,)


@faulty("P107")
def noise_for_every_row_of_every_lane():
    def f(key, x):
        return vmap(lambda row: row + random.normal(key, row.shape))(x)

    return pmap(f, in_axes=(None, 0)), (random.key(0), X)


@faulty("P107")
def mixing_weights():
    return pmap(lambda key, x: x * random.uniform(key, (4, 1)), in_axes=(None, 0)), (
        random.key(0), X,
    )  # fmt: skip


@faulty("P107")
def langevin():
    def f(key, x):
        def step(carry, _):
            key, x = carry
            key, sub = random.split(key)
            return (key, x - 0.1 * x + random.normal(sub, x.shape)), None

        return lax.scan(step, (key, x), None, length=5)[0][1]

    return pmap(f, in_axes=(None, 0)), (random.key(0), X)


@faulty("P106")
def key_of_a_closure_in_a_loop():
    return lambda key: lax.fori_loop(0, 5, lambda i, c: c + random.uniform(key), 0.0), (
        random.key(0),
    )


@faulty("P106")
def always_the_first_child():
    return lambda key: [random.normal(random.split(key)[0]) for _ in range(3)], (random.key(0),)


@faulty("P106")
def order_and_noise():
    return lambda key, x: (random.permutation(key, x), random.normal(key, (3,))), (
        random.key(0), W,
    )  # fmt: skip


@faulty("P116")
def quotients_of_a_dict():
    def f(d):
        return jnp.where(d["n"] > 0, d["s"] / d["n"], 0.0).sum()

    return grad(f), ({"n": W, "s": W},)


@faulty("P116")
def power_of_positive_numbers():
    return grad(lambda x: jnp.where(x > 0, x**0.3, 0.0).sum()), (W,)


@faulty("P116")
def logarithm_that_is_shifted():
    return grad(lambda x: jnp.where(x > -1, jnp.log1p(x), 0.0).sum()), (W,)


@faulty("P116")
def selected_logarithm():
    return grad(lambda x: lax.select(x > 0, jnp.log(x), jnp.zeros_like(x)).sum()), (W,)


@faulty("P116")
def nan_taken_away():
    return grad(lambda x: jnp.nan_to_num(jnp.sqrt(x)).sum()), (W,)


@faulty("P117")
def hypotenuse():
    return grad(lambda x: jnp.sqrt(x[0] ** 2 + x[1] ** 2)), (W,)


@faulty("P117")
def root_of_a_product_with_itself():
    return grad(lambda x: jnp.sqrt(x @ x)), (W,)


@faulty("P117")
def root_of_the_mean_square():
    return jit(grad(lambda w, x, y: jnp.sqrt(mse(w, x, y)))), (W, X[0], Y[0])


@faulty("P112")
def matrix_of_numpy():
    weights = np.ones((3, 3), np.float32)
    return lambda x: x @ weights, (ShapeDtypeStruct((2, 3), "bfloat16"),)


@faulty("P112")
def zero_of_numpy():
    return lambda x: jnp.where(x > 0, x, np.float32(0)), (ShapeDtypeStruct((3,), "bfloat16"),)


@faulty("P113")
def written_for_every_row():
    return lambda x: lax.map(lambda r: (debug.print("{}", r), r)[1], x), (np.ones(100, np.float32),)


@faulty("P113")
def read_in_every_step():
    def f(x):
        def step(c, _):
            like = ShapeDtypeStruct((3,), "float32")
            return io_callback(lambda v: np.asarray(v) * 1, like, c), None

        return lax.scan(step, x, None, length=100)[0]

    return f, (W,)


@faulty("P114")
def clipped_thousand_times():
    def f(x):
        for _ in range(1000):
            x = jnp.where(x > 0, x * 0.99, x + 0.01)
        return x

    return f, (W,)


@faulty("P115")
def places_in_a_matrix():
    def f(x, v):
        return x.at[np.array([0, 0]), np.array([1, 1])].set(v)

    return f, (X[0], np.float32([1, 2]))


@faulty("P115")
def counted_from_both_ends():
    return lambda x, v: x.at[np.array([2, -1])].set(v), (W, np.float32([1, 2]))


@faulty("P109")
def captured_window():
    table = np.ones((2048, 1024), np.float32)
    return lambda i: lax.dynamic_slice(table, (i, 0), (1, 1024)), (np.int32(1),)


@faulty("P105")
def loss_beside_a_learning_rate():
    def step(w, rate, x, y):
        loss, g = value_and_grad(mse)(w, x, y)
        return w - rate * lax.pmean(g, "d"), loss

    mapped = pmap(step, "d", in_axes=(None, None, 0, 0), out_axes=(None, 0))
    return mapped, (W, np.float32(0.1), X, Y)


# ---- of a third round ---------------------------------------------------------------------------


@faulty("P105")
def losses_in_a_row():
    def step(w, x, y):
        w = lax.pvary(w, "d")
        loss, g = value_and_grad(mse)(w, x[0], y[0])
        return lax.pmean(w - 0.1 * g, "d"), loss[None]

    return over_the_mesh(step, (P(), P("d"))), (W, X, Y)


@faulty("P107")
def one_perturbation_for_a_population():
    def evolve(w, key):
        noise = random.normal(key, w.shape)
        fitness = -jnp.sum((w + 0.1 * noise - 1.0) ** 2)
        return w + 0.1 * lax.pmean(fitness * noise, "d")

    return pmap(evolve, "d", in_axes=(None, None), axis_size=8, out_axes=None), (W, random.key(0))


@faulty("P111")
def cache_of_a_decoder():
    def decode(cache, row, at):
        return lax.dynamic_update_slice(cache, row[None, None], (0, at, 0)), cache[0, at] @ row

    cache, row = ShapeDtypeStruct((8, 1024, 256), "float32"), ShapeDtypeStruct((256,), "float32")
    return jit(decode), (cache, row, np.int32(3))


@faulty("P112")
def mask_in_full_precision():
    def attend(x):
        return jnp.tril(jnp.ones((4, 4))) @ x

    return attend, (jnp.ones((4, 3), jnp.bfloat16),)


@faulty("P112")
def gain_in_full_precision():
    def block(x, gain, w):
        scale = lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        return (x * scale * gain) @ w

    half = ShapeDtypeStruct((4, 4), "bfloat16")
    return jit(block), (half, np.ones(4, np.float32), half)


@faulty("P106")
def parent_that_makes_children_inside_of_a_sampler():
    def start(key):
        first, second = random.split(key)
        return random.normal(first), random.uniform(second), random.gamma(key, 2.0, (3,))

    return start, (random.key(0),)


@faulty("P115")
def table_of_values_that_is_learned():
    def update(table, state, action, reward, after):
        old = table[state, action]
        target = reward + 0.9 * table[after].max(-1)
        return table.at[state, action].set(old + 0.1 * (target - old))

    some = np.int32([0, 1, 1, 2])
    return update, (np.zeros((5, 2), np.float32), some, some % 2, np.ones(4, np.float32), some)


@faulty("P115")
def points_in_cells():
    def splat(points, values):
        i, j = jnp.floor(points * 8).astype(int).T
        return jnp.zeros((8, 8)).at[i, j].set(values)

    return splat, (np.ones((30, 2), np.float32) / 3, np.arange(30, dtype=np.float32))


@faulty("P115")
def users_in_buckets():
    return lambda seen, user, time: seen.at[user % 7].set(time), (
        np.zeros(7, np.float32), np.int32([1, 8, 3]), np.float32([1, 2, 3]),
    )  # fmt: skip


@faulty("P115")
def priorities_of_a_sample():
    def renew(priorities, key, errors):
        drawn = random.randint(key, errors.shape, 0, len(priorities))
        return priorities.at[drawn].set(jnp.abs(errors))

    return renew, (np.ones(10, np.float32), random.key(0), np.ones(16, np.float32))


@faulty("P106")
def examples_mixed_by_one_key():
    def mixed(key, x, y):
        share = random.beta(key, 0.2, 0.2)
        order = random.permutation(key, x.shape[0])
        return share * x + (1 - share) * x[order], share * y + (1 - share) * y[order]

    return jit(mixed), (random.key(0), X[0], Y[0])


@faulty("P106")
def noise_by_the_key_that_is_split_next():
    def walk(key, x):
        def step(c, _):
            x, key = c
            key, sub = random.split(key)
            return (x + random.normal(sub, x.shape) * random.uniform(key), key), None

        return lax.scan(step, (x, key), length=9)[0][0]

    return jit(walk), (random.key(0), W)


@faulty("P108")
def means_of_layers_in_a_scan():
    def step(w, means, x):
        def layer(h, w):
            h = h @ w
            return nn.relu(h - h.mean(0)), h.mean(0)

        def loss(w):
            y, means = lax.scan(layer, x, w)
            return jnp.mean(y**2), means

        grads, new = grad(loss, has_aux=True)(w)
        means = tree.map(lambda a, b: 0.9 * a + 0.1 * b, means, new)
        return w - 0.1 * lax.pmean(grads, "x"), means

    own = np.ones((8, 2, 3, 3), np.float32), np.zeros((8, 2, 3), np.float32)
    return pmap(step, "x"), (*own, np.ones((8, 5, 3), np.float32))


@faulty("P111")
def grid_that_a_loop_advances():
    def advance(grid):
        around = sum(jnp.roll(grid, s, a) for s in (1, -1) for a in (0, 1))
        return grid + 0.1 * (around - 4 * grid)

    return jit(lambda g: lax.fori_loop(0, 5, lambda i, g: advance(g), g)), (
        ShapeDtypeStruct((1200, 1200), "float32"),
    )


@faulty("P105")
def loss_of_one_lane_with_dropout():
    def step(w, x, key, t):
        key = random.fold_in(random.fold_in(key, t), lax.axis_index("b"))
        kept = random.bernoulli(key, 0.5, x.shape)
        value, g = value_and_grad(lambda w: jnp.mean((jnp.where(kept, x, 0) @ w) ** 2))(w)
        return w - 0.1 * lax.pmean(g, "b"), value

    lanes = pmap(step, "b", in_axes=(None, 0, None, None), out_axes=(None, 0))
    return lanes, (W, np.ones((8, 4, W.size), np.float32), random.key(0), 3)
