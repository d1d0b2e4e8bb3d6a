"""Mistakes between lanes."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import P, grad, jit, lax, nn, pmap, random, shard_map, tree, value_and_grad
from tests.units.insight.checks.corpus import faulty

ROWS = np.linspace(-1, 1, 8 * 4 * 3, dtype=np.float32).reshape(8, 4, 3)
LABELS = np.ones((8, 4), np.float32)
WEIGHTS = np.ones(3, np.float32)


def squared_error(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


# ---- P101: a collective that some lanes may not reach -------------------------------------------


@faulty("P101")
def sum_if_positive():
    def f(x):
        return lax.cond(x.sum() > 0, lambda v: lax.psum(v, "i"), lambda v: v, x)

    return pmap(f, axis_name="i"), (ROWS,)


@faulty("P101")
def skip_bad_batches():
    def step(w, x, y):
        loss, g = value_and_grad(squared_error)(w, x, y)
        return lax.cond(jnp.isfinite(loss), lambda: w - 0.1 * lax.pmean(g, "data"), lambda: w)

    return pmap(step, "data", in_axes=(None, 0, 0)), (WEIGHTS, ROWS, LABELS)


@faulty("P101")
def iterate_until_each_is_done():
    def solve(x):
        def more(state):
            return jnp.abs(state).max() > 1e-3

        def step(state):
            return state * 0.5 + 0.0 * lax.pmean(state, "w")

        return lax.while_loop(more, step, x)

    return pmap(solve, axis_name="w"), (ROWS,)


@faulty("P101")
def only_the_first_gathers():
    def f(x):
        first = lax.axis_index("i") == 0
        return lax.cond(first, lambda: lax.all_gather(x, "i").sum(), lambda: jnp.float32(0))

    return pmap(f, axis_name="i"), (ROWS,)


@faulty("P101")
def switch_over_experts():
    def f(x):
        kind = jnp.argmax(x.sum(0))
        branches = [lambda v: v, lambda v: lax.ppermute(v, "e", [(0, 1)]), lambda v: 2 * v]
        return lax.switch(kind, branches, x)

    return pmap(f, axis_name="e"), (ROWS,)


# ---- P102: specs that claim too much ------------------------------------------------------------


def mesh():
    return phalanx.make_mesh((phalanx.device_count(),), ("d",))


@faulty("P102")
def mean_of_a_block():
    f = shard_map(lambda x: x.mean(), mesh=mesh(), in_specs=P("d"), out_specs=P(), check_vma=False)
    return f, (ROWS,)


@faulty("P102")
def gradients_of_a_block():
    def step(w, x, y):
        return w - 0.1 * grad(squared_error)(w, x[0], y[0])

    specs = (P(), P("d"), P("d"))
    return shard_map(step, mesh=mesh(), in_specs=specs, out_specs=P(), check_vma=False), (
        WEIGHTS, ROWS, LABELS,
    )  # fmt: skip


@faulty("P102")
def forgot_to_gather():
    @jit
    def f(x):
        local = shard_map(
            lambda x: jnp.cumsum(x, axis=0), mesh=mesh(), in_specs=P("d"), out_specs=P(),
            check_vma=False,
        )  # fmt: skip
        return local(x) * 2

    return f, (ROWS,)


@faulty("P102")
def one_of_two_results():
    def f(x):
        return lax.psum(x.sum(), "d"), x.max()

    return shard_map(f, mesh=mesh(), in_specs=P("d"), out_specs=(P(), P()), check_vma=False), (
        ROWS,
    )


# ---- P103: reduced twice ------------------------------------------------------------------------


@faulty("P103")
def sum_of_a_sum():
    def f(x):
        total = lax.psum(x, "i")
        return x / lax.psum(total, "i")

    return pmap(f, axis_name="i"), (ROWS,)


@faulty("P103")
def gradients_averaged_in_a_helper_and_summed():
    def average(tree_):
        return tree.map(lambda g: lax.pmean(g, "batch"), tree_)

    def step(params, x, y):
        g = average(grad(lambda p: squared_error(p["w"], x, y))(params))
        g = lax.psum(g, "batch")
        return tree.map(lambda p, g: p - 0.01 * g, params, g)

    return pmap(step, axis_name="batch", in_axes=(None, 0, 0), out_axes=None), (
        {"w": WEIGHTS}, ROWS, LABELS,
    )  # fmt: skip


@faulty("P103")
def metrics_summed_after_mean():
    def evaluate(w, x, y):
        loss = lax.pmean(squared_error(w, x, y), "d")
        metrics = {"loss": loss}
        return lax.psum(metrics, "d")

    return pmap(evaluate, "d", in_axes=(None, 0, 0), out_axes=None), (WEIGHTS, ROWS, LABELS)


@faulty("P103")
def norm_of_replicated_parameters():
    def norm(params, x):
        total = sum(jnp.sum(p**2) for p in tree.leaves(params))
        return jnp.sqrt(lax.psum(total, "m") + 1e-6) + 0 * lax.psum(x.sum(), "m")

    return pmap(norm, "m", in_axes=(None, 0), out_axes=None), ({"w": WEIGHTS}, ROWS)


@faulty("P103")
def twice_over_a_mesh():
    def f(x):
        part = lax.psum(x.sum(0), "d")
        return lax.psum(part, "d")

    return shard_map(f, mesh=mesh(), in_specs=P("d"), out_specs=P()), (ROWS,)


# ---- P104: the gradient of a reduced loss -------------------------------------------------------


@faulty("P104")
def loss_summed_inside():
    def step(w, x, y):
        def loss(w):
            return lax.psum(squared_error(w, x, y), "i")

        g = lax.psum(grad(loss)(w), "i")
        return w - 0.1 * g

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (WEIGHTS, ROWS, LABELS)


@faulty("P104")
def loss_averaged_inside_and_gradient_summed():
    def step(w, x, y):
        def loss(w):
            return lax.pmean(squared_error(w, x, y), axis_name="batch")

        value, g = value_and_grad(loss)(w)
        g = lax.psum(g, axis_name="batch")
        return w - 0.1 * g, value

    return pmap(step, "batch", in_axes=(None, 0, 0), out_axes=None), (WEIGHTS, ROWS, LABELS)


@faulty("P104")
def loss_averaged_inside_and_gradient_not():
    @jit
    def loss_fn(w, x, y):
        return lax.pmean(squared_error(w, x, y), "batch")

    def step(w, x, y):
        loss, g = value_and_grad(loss_fn)(w, x, y)
        return w - 0.1 * g, loss

    weights = np.tile(WEIGHTS, (8, 1))
    return pmap(step, axis_name="batch"), (weights, ROWS, LABELS)


@faulty("P104")
def contributions_to_a_global_energy():
    def force(positions):
        def energy(p):
            return lax.psum(jnp.sum(p**2), "atoms")

        return -grad(energy)(positions)

    return pmap(force, axis_name="atoms"), (ROWS,)


@faulty("P104")
def network_with_aux_output():
    def step(params, x, y):
        def loss_fn(params):
            h = jnp.tanh(x @ params["a"])
            out = h @ params["b"]
            loss = lax.psum(jnp.sum((out - y) ** 2), "dev") / 32
            return loss, out

        grads, out = grad(loss_fn, has_aux=True)(params)
        grads = tree.map(lambda g: lax.psum(g, "dev"), grads)
        return tree.map(lambda p, g: p - 0.1 * g, params, grads), out

    params = {"a": np.ones((3, 5), np.float32), "b": np.ones(5, np.float32)}
    return pmap(step, "dev", in_axes=(None, 0, 0), out_axes=(None, 0)), (params, ROWS, LABELS)


# ---- P105: losses and metrics of one lane -------------------------------------------------------


@faulty("P105")
def loss_of_the_lane():
    def step(w, x, y):
        loss, g = value_and_grad(squared_error)(w, x, y)
        g = lax.pmean(g, "batch")
        return w - 0.1 * g, loss

    return pmap(step, "batch", in_axes=(None, 0, 0), out_axes=(None, 0)), (WEIGHTS, ROWS, LABELS)


@faulty("P105")
def replicated_parameters_and_own_loss():
    def update(params, x, y):
        loss, grads = value_and_grad(lambda p: squared_error(p["w"], x, y) + p["b"] ** 2)(params)
        grads = lax.pmean(grads, axis_name="num_devices")
        params = tree.map(lambda p, g: p - g * 0.01, params, grads)
        return params, loss

    params = {"w": np.tile(WEIGHTS, (8, 1)), "b": np.zeros(8, np.float32)}
    return pmap(update, axis_name="num_devices"), (params, ROWS, LABELS)


@faulty("P105")
def accuracy_forgotten():
    def evaluate(w, x, y):
        score = x @ w
        loss = lax.pmean(jnp.mean((score - y) ** 2), "i")
        accuracy = jnp.mean((score > 0) == (y > 0))
        return {"loss": loss, "accuracy": accuracy}

    return pmap(evaluate, axis_name="i", in_axes=(None, 0, 0), out_axes=0), (WEIGHTS, ROWS, LABELS)


@faulty("P105")
def gradient_norm_of_the_lane():
    def step(w, x, y):
        loss, g = value_and_grad(squared_error)(w, x, y)
        norm = jnp.sqrt(jnp.sum(g**2))
        g, loss = lax.pmean((g, loss), "b")
        return w - 0.1 * g, loss, norm

    return pmap(step, "b", in_axes=(None, 0, 0), out_axes=(None, None, 0)), (WEIGHTS, ROWS, LABELS)


# ---- P107: the same numbers in every lane -------------------------------------------------------


@faulty("P107")
def noise_of_one_key():
    def f(key, x):
        return x + 0.1 * random.normal(key, x.shape)

    return pmap(f, in_axes=(None, 0)), (random.key(0), ROWS)


@faulty("P107")
def dropout_of_one_key():
    def apply(w, x, key):
        h = jnp.tanh(x)
        keep = random.bernoulli(key, 0.9, h.shape)
        h = jnp.where(keep, h / 0.9, 0)
        return h @ w

    return pmap(apply, axis_name="i", in_axes=(None, 0, None)), (WEIGHTS, ROWS, random.PRNGKey(1))


@faulty("P107")
def augmentation_in_a_step():
    def step(w, key, x, y):
        key, noise_key = random.split(key)
        x = x + random.normal(noise_key, x.shape) * 0.01
        g = lax.pmean(grad(squared_error)(w, x, y), "batch")
        return w - 0.1 * g, key

    return pmap(step, "batch", in_axes=(None, None, 0, 0), out_axes=None), (
        WEIGHTS, random.key(3), ROWS, LABELS,
    )  # fmt: skip


@faulty("P107")
def sampled_actions():
    def act(logits, key):
        return random.categorical(key, logits)

    return pmap(act, in_axes=(0, None)), (ROWS, random.key(0))


@faulty("P107")
def reparametrized_latents():
    def encode(key, x):
        mean, log_var = x, 0.1 * x
        z = mean + jnp.exp(0.5 * log_var) * random.normal(key, mean.shape)
        return lax.pmean(jnp.sum(z**2), "d")

    specs = (P(), P("d"))
    return shard_map(lambda key, x: encode(key, x), mesh=mesh(), in_specs=specs, out_specs=P()), (
        random.key(2),
        ROWS,
    )


# ---- P108: statistics of one lane ---------------------------------------------------------------


@faulty("P108")
def batch_norm_with_own_statistics():
    def step(params, stats, x, y):
        def loss(p):
            mean, var = x.mean(0), x.var(0)
            h = (x - mean) / jnp.sqrt(var + 1e-5)
            new = {"mean": 0.9 * stats["mean"] + 0.1 * mean, "var": 0.9 * stats["var"] + 0.1 * var}
            return jnp.mean((h @ p - y) ** 2), new

        (value, stats), g = value_and_grad(loss, has_aux=True)(params)
        g, value = lax.pmean((g, value), "batch")
        return params - 0.1 * g, stats, value

    stats = {"mean": np.zeros((8, 3), np.float32), "var": np.ones((8, 3), np.float32)}
    return pmap(step, axis_name="batch"), (np.tile(WEIGHTS, (8, 1)), stats, ROWS, LABELS)


@faulty("P108")
def running_mean_by_difference():
    def step(w, running, x, y):
        running = running + 0.01 * (jnp.mean(x, axis=0) - running)
        g = lax.pmean(grad(squared_error)(w, x - running, y), "i")
        return w - 0.1 * g, running

    return pmap(step, axis_name="i"), (
        np.tile(WEIGHTS, (8, 1)), np.zeros((8, 3), np.float32), ROWS, LABELS,
    )  # fmt: skip


@faulty("P108")
def normalizer_of_observations():
    momentum = 0.99

    def step(state, x):
        policy, norm = state["policy"], state["norm"]
        norm = momentum * norm + (1 - momentum) * x.mean(axis=0)
        g = grad(lambda p: jnp.sum(jnp.tanh((x - norm) @ p)))(policy)
        return {"policy": policy + 0.1 * lax.pmean(g, "envs"), "norm": norm}

    state = {"policy": np.tile(WEIGHTS, (8, 1)), "norm": np.zeros((8, 3), np.float32)}
    return pmap(step, axis_name="envs"), (state, ROWS)


@faulty("P108")
def codebook_usage():
    def step(codes, usage, x):
        near = nn.one_hot(jnp.argmin(jnp.abs(x[..., None] - codes), -1), 5)
        usage = usage * 0.95 + 0.05 * near.mean((0, 1))
        codes = codes - 0.1 * lax.pmean(grad(lambda c: jnp.sum((near @ c - x) ** 2))(codes), "i")
        return codes, usage

    return pmap(step, axis_name="i"), (
        np.tile(np.float32([0, 1, 2, 3, 4]), (8, 1)), np.ones((8, 5), np.float32), ROWS,
    )  # fmt: skip


# ---- P118: lanes that do not go up into devices -------------------------------------------------


@faulty("P118")
def nine_lanes():
    n = phalanx.device_count() + 1
    return pmap(lambda x: jnp.sin(x).sum()), (np.ones((n, 5), np.float32),)


@faulty("P118")
def ten_folds():
    n = phalanx.device_count() + 2

    def fit(x, y):
        return jnp.linalg.solve(x.T @ x + jnp.eye(3), x.T @ y)

    return pmap(fit), (np.ones((n, 4, 3), np.float32), np.ones((n, 4), np.float32))


@faulty("P118")
def five_members_on_four_devices():
    ensemble = pmap(lambda w, x: jnp.tanh(x @ w), in_axes=(0, None), devices=phalanx.devices()[:4])
    return jit(lambda w, x: ensemble(w, x).mean(0)), (np.ones((5, 3), np.float32), ROWS[0])
