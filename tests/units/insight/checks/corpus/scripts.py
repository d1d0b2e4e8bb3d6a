"""Scripts: what happens between compiled functions, where Python loops over them.

Each is a function that runs, as a script does. They were written before anything looked at them.
"""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import grad, jit, lax, nn, pmap, random, vmap
from tests.units.insight.checks.corpus import correct_script, faulty_script

X = np.linspace(-1, 1, 64 * 4, dtype=np.float32).reshape(64, 4)
W = np.ones(4, np.float32)


def dropout_loss(w, key, x):
    kept = random.bernoulli(key, 0.9, x.shape)
    return jnp.mean((jnp.where(kept, x / 0.9, 0.0) @ w) ** 2)


@jit
def dropout_step(w, key, x):
    return w - 0.1 * grad(dropout_loss)(w, key, x)


@jit
def folding_step(w, key, i, x):
    return w - 0.1 * grad(dropout_loss)(w, random.fold_in(key, i), x)


@jit
def choose(key, logits):
    return random.categorical(key, logits)


def dense(key, rows, columns):
    return random.normal(key, (rows, columns))


class Noise:
    def __init__(self, seed):
        self.key = random.key(seed)

    def __call__(self, x):
        return x + random.normal(self.key, x.shape)


@jit
def initialize(key):
    return random.normal(key, (4,))


@jit
def samples(key):
    return random.uniform(key, (10, 4))


@jit
def shaken(key, x):
    return x + random.normal(key, x.shape)


def walk(x, key):
    return lax.scan(lambda x, k: (x + random.normal(k, x.shape), None), x, random.split(key, 5))[0]


# ---- correct ------------------------------------------------------------------------------------


@correct_script
def a_key_for_each_step():
    key, w = random.key(0), W
    for i in range(20):
        key, sub = random.split(key)
        w = dropout_step(w, sub, X + i)


@correct_script
def the_number_of_the_step_is_folded_in():
    key, w = random.key(0), W
    for i in range(20):
        w = folding_step(w, key, i, X)


@correct_script
def keys_of_layers():
    layers = []
    for key in random.split(random.key(3), 6):
        w_key, b_key = random.split(key)
        layers.append((random.normal(w_key, (4, 4)), random.uniform(b_key, (4,))))


@correct_script
def two_models_from_one_seed():
    def init(key, width):
        return random.normal(key, (4, width))

    key = random.key(0)
    for width in (8, 16, 32):
        init(key, width)


@correct_script
def layers_of_one_seed_and_size_that_are_compared():
    key = random.key(0)
    return [rate * dense(key, 4, 4) for rate in (0.1, 0.2)], dense(key, 4, 4), dense(key, 4, 4)


@correct_script
def seeds_of_their_own():
    def noise():
        return random.normal(random.key(0), (3,))

    def rest():
        key = random.key(0)
        return random.uniform(key, (3,))

    for _ in range(3):
        noise(), rest()


@correct_script
def two_ways_to_shake():
    key = random.key(0)
    return shaken(key, W) - jit(lambda key, x: random.normal(key, x.shape) + x)(key, W)


@correct_script
def walkers_with_their_own_keys():
    return vmap(walk)(X[:8], random.split(random.key(0), 8))


@correct_script
def function_that_decides_by_what_all_examples_share():
    def scaled(x, s):
        return x * s if jnp.max(s) > 0 else x

    return vmap(scaled, in_axes=(0, None))(X, jnp.ones(4))


@correct_script
def the_same_run_twice():
    def run(seed):
        key, w = random.key(seed), jnp.asarray(W)
        for _ in range(5):
            key, sub = random.split(key)
            w = w + random.normal(sub, w.shape)
        return w

    np.testing.assert_array_equal(run(7), run(7))


@correct_script
def timing_a_sampler():
    key, logits = random.key(0), jnp.zeros((16, 4))
    for _ in range(30):
        choose(key, logits).block_until_ready()


@correct_script
def a_key_that_evaluation_does_not_use():
    @jit
    def evaluate(w, key, x):
        del key
        return jnp.mean((x @ w) ** 2)

    key = random.key(0)
    for i in range(10):
        evaluate(W, key, X + i)


@jit
def held_out_loss(w, key, x):
    return dropout_loss(w, key, x)


@correct_script
def held_out_losses_that_are_compared():
    """The same random numbers, so that only the weights differ."""
    key, w, same = random.key(0), W, random.key(99)
    for i in range(4):
        key, sub = random.split(key)
        w = dropout_step(w, sub, X + i)
        float(held_out_loss(w, same, X))


@correct_script
def losses_added_up_over_many_steps():
    step = jit(lambda w, x: (w - 0.1 * grad(lambda w: jnp.mean((x @ w) ** 2))(w), jnp.mean(x @ w)))
    w, total = jnp.asarray(W), 0.0
    for i in range(600):
        w, loss = step(w, X)
        total = total + loss
        if i % 100 == 0:
            float(total / (i + 1))


@correct_script
def a_long_loop_in_one_program():
    jit(lambda x: lax.fori_loop(0, 20_000, lambda i, x: x * 0.999 + i, x))(1.0)


@correct_script
def batches_by_number():
    images = jnp.asarray(np.ones((256, 8), np.float32))
    f = jit(lambda x: x.sum())
    for epoch in range(4):
        order = np.random.default_rng(epoch).permutation(256)
        for rows in order.reshape(-1, 4):
            f(images[rows])


@correct_script
def one_key_for_two_ways_of_computing():
    key, x = random.key(0), jnp.asarray(X)
    alone = dropout_loss(jnp.asarray(W), key, x)
    compiled = jit(dropout_loss)(jnp.asarray(W), key, x)
    np.testing.assert_allclose(alone, compiled, rtol=1e-5)


@correct_script
def data_of_one_seed_in_two_functions():
    def train():
        return random.normal(random.key(0), (8, 4))

    def test():
        return random.normal(random.key(0), (8, 4))

    np.testing.assert_array_equal(train(), test())


@correct_script
def keys_for_lanes():
    step = pmap(lambda w, key, x: w + random.normal(key, w.shape) * x.mean(), in_axes=(None, 0, 0))
    count = phalanx.device_count()
    key = random.key(0)
    for i in range(5):
        keys = random.split(random.fold_in(key, i), count)
        step(W, keys, np.ones((count, 3), np.float32))


# ---- faulty -------------------------------------------------------------------------------------


@faulty_script("P106")
def the_same_weights_in_all_layers():
    key = random.key(0)
    [random.normal(key, (4, 4)) for _ in range(3)]


@faulty_script("P106")
def the_same_dropout_in_all_steps():
    key, w = random.key(0), jnp.asarray(W)
    for i in range(10):
        w = dropout_step(w, key, X + i)


@faulty_script("P106")
def split_once_before_the_loop():
    key, noise_key = random.split(random.key(0))
    w = random.normal(key, (4,))
    for _ in range(10):
        w = dropout_step(w, noise_key, X)


@faulty_script("P106")
def the_same_luck_in_every_step_of_an_episode():
    key, state = random.key(0), jnp.zeros((2, 4))
    for _ in range(15):
        action = choose(key, state)
        state = state + nn.one_hot(action, 4)


@faulty_script("P106")
def the_same_order_in_every_epoch():
    key = random.key(0)
    for _ in range(3):
        order = random.permutation(key, 64)
        X[np.asarray(order)].sum()


@faulty_script("P106")
def always_the_first_child():
    key, total = random.key(0), 0.0
    for _ in range(8):
        sub = random.split(key)[0]
        total += random.normal(sub)


@faulty_script("P106")
def folded_with_what_does_not_change():
    key, w, epoch = random.key(0), jnp.asarray(W), 1
    for _ in range(8):
        w = folding_step(w, key, epoch, X)


@faulty_script("P106")
def the_same_keys_in_lanes_at_every_step():
    step = pmap(lambda w, key, x: w + random.normal(key, w.shape) * x, in_axes=(0, 0, None))
    count = phalanx.device_count()
    keys, w = random.split(random.key(0), count), np.ones((count, 3), np.float32)
    for _ in range(5):
        w = step(w, keys, 0.1)


@faulty_script("P106")
def drawn_with_and_split():
    key = random.key(0)
    x = random.normal(key, (8, 4))
    key, sub = random.split(key)
    return x @ random.normal(sub, (4, 2))


@faulty_script("P106")
def split_and_folded():
    key = random.key(0)
    np.testing.assert_array_equal(
        random.key_data(random.fold_in(key, 1)), random.key_data(random.split(key)[1])
    )
    x = random.normal(random.fold_in(key, 1), (8, 4))
    _, sub = random.split(key)
    return x @ random.normal(sub, (4, 2))


@faulty_script("P106")
def weights_and_biases_of_one_key():
    w_key, b_key = random.split(random.key(0))
    layer = {"w": random.normal(w_key, (4, 4)), "b": random.normal(b_key, (4,))}
    layer["scale"] = random.uniform(b_key, (4,))
    return layer


@faulty_script("P114")
def a_simulation_that_nobody_compiled():
    x, v = jnp.ones(8), jnp.zeros(8)
    for _ in range(1000):
        force = -x - 0.1 * v + jnp.sin(x)
        v = v + 0.01 * force
        x = x + 0.01 * v


@faulty_script("P114")
def descent_that_nobody_compiled():
    w = jnp.asarray(W)
    for _ in range(600):
        w = w - 0.1 * grad(lambda w: jnp.mean((X @ w) ** 2))(w)


@faulty_script("P114")
def element_by_element():
    x = jnp.zeros(1500)
    for i in range(1500):
        x = x.at[i].set(jnp.sin(0.1 * i) * 2)


@faulty_script("P114")
def a_cell_called_for_each_row():
    w, h = jnp.eye(4), jnp.zeros(4)
    rows = jnp.asarray(np.tile(X, (16, 1)))

    def cell(h, x):
        gate = nn.sigmoid(w @ x)
        return gate * h + (1 - gate) * jnp.tanh(w @ h)

    for i in range(len(rows)):
        h = cell(h, rows[i])


@faulty_script("P106")
def data_and_weights_with_one_key():
    key = random.key(0)
    x = samples(key)
    return x @ initialize(key)


@faulty_script("P106")
def functions_that_draw_with_one_key():
    key = random.key(0)
    return dense(key, 4, 8), dense(key, 8, 2)


@faulty_script("P106")
def object_that_keeps_its_key():
    noise, x = Noise(0), jnp.ones(3)
    for _ in range(3):
        x = noise(x)


@faulty_script("P107")
def walkers_with_one_key():
    return vmap(walk, in_axes=(0, None))(X[:8], random.key(0))


@faulty_script("P117")
def gradient_of_a_compiled_function():
    @jit
    def energy(x):
        r = jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1))
        return jnp.where(jnp.eye(len(x)) > 0, 0.0, 1 / r**12).sum()

    return grad(energy)(X[:3])
