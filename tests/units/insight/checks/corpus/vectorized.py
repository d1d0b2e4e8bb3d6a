"""Programs over the lanes of vmap: correct ones, and ones with a mistake."""

import functools

import numpy as np

import phalanx.numpy as jnp
from phalanx import grad, jit, lax, nn, pmap, random, tree, value_and_grad, vmap
from tests.units.insight.checks.corpus import correct, faulty

W = np.ones(3, np.float32)
X = np.linspace(-1, 1, 4 * 8 * 3, dtype=np.float32).reshape(4, 8, 3)
Y = np.ones((4, 8), np.float32)
KEY = random.key(0)


def mse(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


# ---- nothing is wrong ---------------------------------------------------------------------------


@correct
def batch_normalization_over_examples():
    @functools.partial(vmap, in_axes=(None, 0), axis_name="batch")
    def layer(w, x):
        h = x @ w
        mean = lax.pmean(h, "batch")
        var = lax.pmean((h - mean) ** 2, "batch")
        return nn.relu((h - mean) / jnp.sqrt(var + 1e-5))

    @jit
    def step(w, x):
        value, g = value_and_grad(lambda w: jnp.mean((layer(w, x) - 0.5) ** 2))(w)
        return w - 0.1 * g, value

    return step, (np.ones((3, 4), np.float32), X[0])


@correct
def negatives_of_other_examples():
    @functools.partial(vmap, axis_name="b")
    def nce(a, b):
        return -nn.log_softmax(lax.all_gather(b, "b") @ a / 0.1)[lax.axis_index("b")]

    return jit(grad(lambda w, a, b: nce(a @ w, b @ w).mean())), (np.eye(3), X[0], X[1])


@correct
def workers_that_are_simulated():
    @functools.partial(vmap, in_axes=(None, 0, 0), out_axes=None, axis_name="workers")
    def step(w, x, y):
        value, g = lax.pmean(value_and_grad(mse)(w, x, y), "workers")
        return w - 0.1 * g, value

    return jit(step), (W, X, Y)


@correct
def clients_average_their_weights():
    @functools.partial(vmap, in_axes=(None, 0, 0, 0), out_axes=(None, 0), axis_name="clients")
    def run(w, x, y, key):
        def local(w, key):
            i = random.randint(key, (4,), 0, x.shape[0])
            value, g = value_and_grad(mse)(w, x[i], y[i])
            return w - 0.05 * g, value

        w, losses = lax.scan(local, w, random.split(key, 5))
        return lax.pmean(w, "clients"), losses

    return run, (W, X, Y, random.split(KEY, 4))


@correct
def layers_whose_number_is_an_argument():
    def network(w, x, layers):
        for _ in range(layers):
            x = nn.relu(x - lax.pmean(x, "rows")) @ w
        return x

    lanes = vmap(network, in_axes=(None, 0, None), axis_name="rows")
    return jit(grad(lambda w, x: lanes(w, x, 3).sum())), (np.eye(3, dtype=np.float32), X[0])


@correct
def lanes_of_lanes():
    def inner(x):
        return x - lax.pmean(x, ("i", "j"))

    return vmap(vmap(inner, axis_name="i"), axis_name="j"), (X,)


# ---- mistakes -----------------------------------------------------------------------------------


@faulty("P101")
def examples_that_are_centred_if_positive():
    def lane(x):
        return lax.cond(x.sum() > 0, lambda x: x - lax.pmean(x, "i"), lambda x: x, x)

    return vmap(lane, axis_name="i"), (X,)


@faulty("P101")
def workers_that_stop_alone():
    def fit(w, x, y):
        def body(s):
            g = lax.pmean(grad(mse)(s[0], x, y), "w")
            return s[0] - 0.1 * g, mse(s[0], x, y)

        return lax.while_loop(lambda s: s[1] > 1e-3, body, (w, jnp.float32(1)))[0]

    return jit(vmap(fit, in_axes=(None, 0, 0), axis_name="w")), (W, X, Y)


@faulty("P103")
def mean_of_workers_summed_again():
    def step(w, x, y):
        g = lax.pmean(grad(mse)(w, x, y), "w")
        return w - 0.1 * lax.psum(g, "w")

    return jit(vmap(step, in_axes=(None, 0, 0), out_axes=None, axis_name="w")), (W, X, Y)


@faulty("P103")
def penalty_of_what_examples_share():
    lanes = vmap(
        lambda w, x, y: lax.psum(mse(w, x, y), "b") + lax.psum(0.01 * jnp.sum(w * w), "b"),
        in_axes=(None, 0, 0), out_axes=None, axis_name="b",
    )  # fmt: skip
    return jit(lanes), (W, X, Y)


@faulty("P104")
def loss_summed_over_clients():
    def step(w, x, y):
        g = grad(lambda w: lax.psum(mse(w, x, y), "clients"))(w)
        return w - 0.01 * lax.psum(g, "clients")

    return vmap(step, in_axes=(None, 0, 0), out_axes=None, axis_name="clients"), (W, X, Y)


@faulty("P105")
def loss_of_one_worker():
    def step(w, x, y):
        value, g = value_and_grad(mse)(w, x, y)
        return w - 0.1 * lax.pmean(g, "w"), value

    return jit(vmap(step, in_axes=(None, 0, 0), out_axes=(None, 0), axis_name="w")), (W, X, Y)


@faulty("P107")
def one_noise_for_all_rows():
    def augment(key, row):
        noisy = row + 0.1 * random.normal(key, row.shape)
        return noisy - lax.pmean(noisy, "rows")

    return vmap(augment, in_axes=(None, 0), axis_name="rows"), (KEY, X[0])


@faulty("P108")
def statistics_of_one_worker():
    def step(w, mean, x, y):
        mean = 0.9 * mean + 0.1 * x.mean(0)
        g = lax.pmean(grad(mse)(w, x - mean, y), "w")
        return w - 0.1 * g, mean

    own = tree.map(lambda a: np.stack([a] * 4), W)
    return jit(vmap(step, axis_name="w")), (own, np.zeros((4, 3), np.float32), X, Y)


@faulty("P108")
def statistics_of_one_lane_by_a_decay_that_is_an_array():
    decay = jnp.asarray(0.9)

    def step(w, mean, x, y):
        mean = mean * decay + x.mean(0, keepdims=True) * (1 - decay)
        g = lax.pmean(grad(mse)(w, x - mean, y), "i")
        return w - 0.1 * g, mean

    own = np.stack([W] * 4)
    return pmap(step, axis_name="i"), (own, np.zeros((4, 1, 3), np.float32), X, Y)


@faulty("P104")
def moments_of_an_energy_of_all_walkers():
    def step(w, m, v, x, y):
        value, g = value_and_grad(lambda w: lax.psum(mse(w, x, y), "walkers") / 4)(w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v, value

    lanes = pmap(step, "walkers", in_axes=(None, None, None, 0, 0), out_axes=(0, 0, 0, None))
    return lanes, (W, 0 * W, 0 * W, X, Y)


# ---- lanes of vmap without a name ---------------------------------------------------------------


def proposed(key, x):
    noise, chance = random.split(key)
    y = x + 0.5 * random.normal(noise, x.shape)
    return jnp.where(jnp.log(random.uniform(chance)) < 0.5 * (x @ x - y @ y), y, x)


@correct
def chains_with_keys_of_their_own():
    return jit(lambda key, x: vmap(proposed)(random.split(key, 4), x)), (KEY, X[:, 0])


@faulty("P107")
def chains_with_one_key():
    return jit(vmap(proposed, in_axes=(None, 0))), (KEY, X[:, 0])


@faulty("P107")
def walks_with_one_key():
    def walk(key, x):
        def step(x, key):
            return x + random.normal(key, x.shape), None

        return lax.scan(step, x, random.split(key, 9))[0]

    return jit(lambda key, x: vmap(lambda x: walk(key, x))(x)), (KEY, X[0])


@correct
def quantiles_fitted_to_the_same_batches():
    def fit(key, x, y, q):
        def step(w, key):
            i = random.permutation(key, x.shape[0])[:4]
            g = grad(lambda w: jnp.maximum(q * (y - x @ w), (q - 1) * (y - x @ w))[i].mean())(w)
            return w - 0.05 * g, None

        return lax.scan(step, jnp.zeros(3), random.split(key, 10))[0]

    q = np.float32([0.1, 0.5, 0.9])
    return jit(vmap(fit, in_axes=(None, None, None, 0))), (KEY, X[0], Y[0], q)


@correct
def policies_compared_by_the_same_luck():
    def episode(key, w):
        def step(state, key):
            state = 0.9 * state + jnp.tanh(state @ w) + 0.1 * random.normal(key, (3,))
            return state, jnp.sum(state**2)

        first, key = random.split(key)
        return lax.scan(step, random.normal(first, (3,)), random.split(key, 20))[1].mean()

    population = np.stack([np.eye(3, dtype=np.float32)] * 4)
    return jit(vmap(episode, in_axes=(None, 0))), (KEY, population)


@correct
def prices_at_several_volatilities():
    def price(key, volatility):
        moves = volatility * random.normal(key, (1000,)) - volatility**2 / 2
        return jnp.maximum(jnp.exp(moves) - 1, 0).mean()

    return jit(vmap(price, in_axes=(None, 0))), (KEY, np.float32([0.1, 0.2, 0.3]))
