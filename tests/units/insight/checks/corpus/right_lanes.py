"""Correct programs over lanes and meshes."""

import functools
from typing import NamedTuple

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import (
    P,
    ShapeDtypeStruct,
    checkpoint,
    custom_vjp,
    debug,
    grad,
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
from tests.units.insight.checks.corpus import correct

X = np.linspace(-1, 1, 8 * 4 * 3, dtype=np.float32).reshape(8, 4, 3)
Y = np.ones((8, 4), np.float32)
W = np.ones(3, np.float32)
PARAMS = {"hidden": np.ones((3, 5), np.float32), "bias": np.zeros(5, np.float32),
          "out": np.ones(5, np.float32)}  # fmt: skip


def replicate(x):
    return tree.map(lambda a: np.broadcast_to(a, (8, *np.shape(a))), x)


def mse(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


def network(params, x):
    return nn.relu(x @ params["hidden"] + params["bias"]) @ params["out"]


def network_loss(params, x, y):
    return jnp.mean((network(params, x) - y) ** 2)


# ---- training over data -------------------------------------------------------------------------


@correct
def sgd():
    def step(w, x, y):
        loss, g = value_and_grad(mse)(w, x, y)
        g, loss = lax.pmean(g, "i"), lax.pmean(loss, "i")
        return w - 0.1 * g, loss

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (W, X, Y)


@correct
def sgd_of_replicated_parameters():
    @functools.partial(pmap, axis_name="batch", donate_argnums=0)
    def step(params, x, y):
        loss, grads = value_and_grad(network_loss)(params, x, y)
        grads = lax.pmean(grads, axis_name="batch")
        params = tree.map(lambda p, g: p - 0.01 * g, params, grads)
        return params, lax.pmean(loss, axis_name="batch")

    return step, (replicate(PARAMS), X, Y)


@correct
def parameters_alone_are_returned():
    @functools.partial(pmap, axis_name="batch")
    def step(params, batch):
        grads = grad(lambda p: network_loss(p, *batch))(params)
        grads = [lax.psum(g, "batch") / 8 for g in tree.leaves(grads)]
        leaves, treedef = tree.flatten(params)
        return tree.unflatten(treedef, [p - 0.1 * g for p, g in zip(leaves, grads, strict=True)])

    return step, (replicate(PARAMS), (X, Y))


class TrainState(NamedTuple):
    step: np.ndarray
    params: dict
    momentum: dict


@correct
def momentum_in_a_state():
    def step(state, x, y):
        loss, g = value_and_grad(network_loss)(state.params, x, y)
        g = lax.pmean(g, "data")
        momentum = tree.map(lambda m, g: 0.9 * m + g, state.momentum, g)
        params = tree.map(lambda p, m: p - 0.01 * m, state.params, momentum)
        metrics = lax.pmean({"loss": loss}, "data")
        return TrainState(state.step + 1, params, momentum), metrics

    zeros = tree.map(np.zeros_like, PARAMS)
    state = replicate(TrainState(np.zeros((), np.int32), PARAMS, zeros))
    return pmap(step, axis_name="data"), (state, X, Y)


@correct
def loss_averaged_inside_and_gradients_too():
    def step(w, x, y):
        def loss(w):
            return lax.pmean(mse(w, x, y), "i")

        value, g = value_and_grad(loss)(w)
        return w - 0.1 * lax.pmean(g, "i"), value

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (W, X, Y)


@correct
def average_of_everything_again():
    def step(w, x, y):
        def loss(w):
            return lax.pmean(mse(w, x, y), "i")

        value, g = lax.pmean(value_and_grad(loss)(w), "i")
        return w - 0.1 * g, value

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (W, X, Y)


@correct
def sums_and_counts():
    def step(w, x, y, mask):
        def total(w):
            return jnp.sum(mask * (x @ w - y) ** 2)

        value, g = value_and_grad(total)(w)
        value, g, count = lax.psum((value, g, mask.sum()), "i")
        return w - 0.1 * g / count, value / count

    return pmap(step, "i", in_axes=(None, 0, 0, 0), out_axes=None), (W, X, Y, Y)


@correct
def accumulated_gradients():
    def step(w, x, y):
        def micro(g, row):
            return tree.map(jnp.add, g, grad(mse)(w, row[0][None], row[1][None])), None

        g, _ = lax.scan(micro, jnp.zeros_like(w), (x, y))
        return w - 0.1 * lax.pmean(g / x.shape[0], "i")

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (W, X, Y)


@correct
def steps_in_a_scan():
    def train(w, xs, ys):
        def step(w, batch):
            value, g = value_and_grad(mse)(w, *batch)
            value, g = lax.pmean((value, g), "lanes")
            return w - 0.05 * g, value

        return lax.scan(step, w, (xs, ys))

    return pmap(train, "lanes", in_axes=(None, 0, 0), out_axes=None), (
        W, np.ones((8, 5, 4, 3), np.float32), np.ones((8, 5, 4), np.float32),
    )  # fmt: skip


@correct
def adam_with_clipping():
    def step(params, m, v, count, x, y):
        loss, g = value_and_grad(network_loss)(params, x, y)
        g, loss = lax.pmean((g, loss), "b")
        norm = jnp.sqrt(sum(jnp.sum(a * a) for a in tree.leaves(g)))
        g = tree.map(lambda a: a * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), g)
        m = tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        params = tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return params, m, v, count + 1, {"loss": loss, "norm": norm}

    zeros = tree.map(np.zeros_like, PARAMS)
    return pmap(step, "b", in_axes=(None, None, None, None, 0, 0), out_axes=None), (
        PARAMS, zeros, zeros, np.int32(0), X, Y,
    )  # fmt: skip


@correct
def batch_norm_in_step():
    def step(params, stats, x, y):
        def loss(p):
            mean = lax.pmean(x.mean(0), "i")
            var = lax.pmean(((x - mean) ** 2).mean(0), "i")
            h = (x - mean) * lax.rsqrt(var + 1e-5)
            return mse(p, h, y), 0.9 * stats + 0.1 * mean

        (value, stats), g = value_and_grad(loss, has_aux=True)(params)
        g, value = lax.pmean((g, value), "i")
        return params - 0.1 * g, stats, value

    return pmap(step, axis_name="i"), (replicate(W), np.zeros((8, 3), np.float32), X, Y)


@correct
def statistics_averaged_afterwards():
    def step(w, stats, x, y):
        mean = x.mean(axis=0)
        g = grad(mse)(w, x - mean, y)
        stats = 0.99 * stats + 0.01 * mean
        return w - 0.1 * lax.pmean(g, "i"), lax.pmean(stats, "i")

    return pmap(step, axis_name="i"), (replicate(W), np.zeros((8, 3), np.float32), X, Y)


@correct
def dynamic_loss_scale():
    def step(w, scale, x, y):
        value, g = value_and_grad(lambda w: scale * mse(w, x, y))(w)
        g = lax.pmean(g, "i") / scale
        finite = jnp.all(jnp.isfinite(g))
        w = jnp.where(finite, w - 0.1 * g, w)
        return w, jnp.where(finite, scale * 1.1, scale / 2), lax.pmean(value, "i") / scale

    return pmap(step, "i", in_axes=(None, None, 0, 0), out_axes=None), (W, np.float32(8), X, Y)


@correct
def gradients_outside():
    loss = pmap(lambda w, x, y: lax.pmean(mse(w, x, y), "i"), "i", in_axes=(None, 0, 0))
    return jit(grad(lambda w, x, y: loss(w, x, y)[0])), (W, X, Y)


@correct
def gradients_outside_of_one_result():
    loss = pmap(lambda w, x, y: lax.psum(mse(w, x, y), "i"), "i", in_axes=(None, 0, 0),
                out_axes=None)  # fmt: skip

    def step(w, x, y):
        value, g = value_and_grad(loss)(w, x, y)
        return w - 0.1 * g, value

    return jit(step), (W, X, Y)


@correct
def checkpointed_layers():
    def step(params, x, y):
        def loss(p):
            h = checkpoint(lambda p, x: jnp.tanh(x @ p["hidden"] + p["bias"]))(p, x)
            return jnp.mean((h @ p["out"] - y) ** 2)

        value, g = value_and_grad(loss)(params)
        value, g = lax.pmean((value, g), "i")
        return tree.map(lambda p, g: p - 0.1 * g, params, g), value

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (PARAMS, X, Y)


@correct
def exponential_moving_average():
    def step(w, ema, x, y):
        w = w - 0.1 * lax.pmean(grad(mse)(w, x, y), "i")
        return w, 0.999 * ema + 0.001 * w

    return pmap(step, axis_name="i"), (replicate(W), replicate(W), X, Y)


@correct
def truncated_backpropagation():
    def step(w, carry, xs):
        def loss(w):
            def cell(h, x):
                h = jnp.tanh(h + x @ w)
                return h, h

            last, hs = lax.scan(cell, carry, xs)
            return jnp.mean(hs**2), lax.stop_gradient(last)

        (value, carry), g = value_and_grad(loss, has_aux=True)(w)
        g, value = lax.pmean((g, value), "i")
        return w - 0.1 * g, carry, value

    w = replicate(np.eye(3, dtype=np.float32))
    return pmap(step, axis_name="i"), (w, np.zeros((8, 3), np.float32), X)


@correct
def zero_style_sharded_optimizer():
    def step(w, m, x, y):
        g = grad(mse)(w, x, y)
        part = lax.psum_scatter(g, "i", tiled=True) / 8
        m = 0.9 * m + part
        full = lax.all_gather(m, "i", tiled=True)
        return w - 0.1 * full, m

    x = np.ones((8, 4, 16), np.float32)
    return pmap(step, "i", in_axes=(None, 0, 0, 0), out_axes=(None, 0)), (
        np.ones(16, np.float32), np.zeros((8, 2), np.float32), x, Y,
    )  # fmt: skip


@correct
def mean_over_hosts_of_losses():
    """The host averages what the lanes return."""

    def step(w, x, y):
        return grad(mse)(w, x, y), mse(w, x, y)

    return pmap(step, in_axes=(None, 0, 0)), (W, X, Y)


@correct
def mean_of_losses_inside_jit():
    @jit
    def step(w, x, y):
        def lane(w, x, y):
            loss, g = value_and_grad(mse)(w, x, y)
            return lax.pmean(g, "i"), loss

        g, losses = pmap(lane, "i", in_axes=(None, 0, 0), out_axes=(None, 0))(w, x, y)
        return w - 0.1 * g, losses.mean()

    return step, (W, X, Y)


@correct
def gradients_of_parameters_and_of_lanes():
    lanes = pmap(lambda w, s: jnp.sum(jnp.tanh(w * s)), in_axes=(None, 0))
    return jit(grad(lambda w, s: lanes(w, s).sum(), argnums=(0, 1))), (W, np.ones(8, np.float32))


@correct
def branches_of_lanes():
    def f(w, x):
        branches = [lambda x: w * jnp.log(x), lambda x: 1 / (x - 3), lambda x: w * x]
        return lax.switch((x > 0).astype(int) + (x > 3), branches, x)

    return vmap(grad(f), (None, 0)), (np.float32(2), np.float32([-1, 0, 1]))


# ---- randomness ---------------------------------------------------------------------------------


@correct
def keys_split_outside():
    def f(key, x):
        return x + random.normal(key, x.shape)

    return jit(lambda key, x: pmap(f)(random.split(key, 8), x)), (random.key(0), X)


@correct
def keys_folded_inside():
    def f(key, x):
        key = random.fold_in(key, lax.axis_index("i"))
        keep = random.bernoulli(key, 0.9, x.shape)
        return jnp.where(keep, x / 0.9, 0.0)

    return pmap(f, "i", in_axes=(None, 0)), (random.key(0), X)


@correct
def same_initialization_in_all_lanes():
    def init(key, x):
        k1, k2 = random.split(key)
        w = random.normal(k1, (3, 5)) / np.float32(np.sqrt(3))
        b = 0.1 * random.normal(k2, (5,))
        return jnp.tanh(x @ w + b).mean()

    return pmap(init, in_axes=(None, 0)), (random.key(0), X)


@correct
def dropout_training_step():
    def step(params, key, x, y):
        key, sub = random.split(key)
        sub = random.fold_in(sub, lax.axis_index("batch"))

        def loss(p):
            h = nn.relu(x @ p["hidden"] + p["bias"])
            h = h * random.bernoulli(sub, 0.5, h.shape) * 2
            return jnp.mean((h @ p["out"] - y) ** 2)

        value, g = lax.pmean(value_and_grad(loss)(params), "batch")
        return tree.map(lambda p, g: p - 0.1 * g, params, g), key, value

    return pmap(step, "batch", in_axes=(None, None, 0, 0), out_axes=None), (
        PARAMS, random.key(1), X, Y,
    )  # fmt: skip


@correct
def chains_of_a_sampler():
    def chain(key):
        def step(carry, key):
            x, logp = carry
            propose, accept = random.split(key)
            new = x + 0.5 * random.normal(propose, x.shape)
            new_logp = -0.5 * jnp.sum(new**2)
            ok = jnp.log(random.uniform(accept)) < new_logp - logp
            return (jnp.where(ok, new, x), jnp.where(ok, new_logp, logp)), x

        return lax.scan(step, (jnp.zeros(2), 0.0), random.split(key, 50))[1]

    return pmap(chain), (random.split(random.key(0), 8),)


@correct
def random_projection_shared_by_all():
    def f(key, x):
        return x @ random.normal(key, (3, 16))

    return pmap(f, in_axes=(None, 0)), (random.key(4), X)


# ---- collectives --------------------------------------------------------------------------------


@correct
def softmax_over_lanes():
    def f(x):
        top = lax.pmax(lax.stop_gradient(x), "i")
        e = jnp.exp(x - top)
        return e / lax.psum(e, "i")

    return pmap(f, "i"), (X,)


@correct
def share_of_the_total():
    return pmap(lambda x: x / lax.psum(x, "i"), "i"), (X,)


@correct
def counts_lanes():
    return pmap(lambda x: x / lax.psum(jnp.ones(()), "n") + lax.psum(1, "n"), "n"), (X,)


@correct
def contrastive_loss():
    def step(w, x, y):
        def loss(w):
            a, b = x @ w, jnp.tanh(x @ w)
            every = lax.all_gather(b, "i", tiled=True)
            scores = a @ every.T
            here = lax.axis_index("i") * a.shape[0] + jnp.arange(a.shape[0])
            return -jnp.mean(nn.log_softmax(scores)[jnp.arange(a.shape[0]), here])

        value, g = value_and_grad(loss)(w)
        return w - 0.1 * lax.pmean(g, "i"), lax.pmean(value, "i")

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (np.eye(3, dtype="float32"), X, Y)


@correct
def halo_exchange():
    def diffuse(u):
        n = 8
        left = lax.ppermute(u[-1:], "x", [(i, (i + 1) % n) for i in range(n)])
        right = lax.ppermute(u[:1], "x", [(i, (i - 1) % n) for i in range(n)])
        v = jnp.concatenate([left, u, right])
        return u + 0.1 * (v[2:] - 2 * u + v[:-2])

    return pmap(lambda u: lax.fori_loop(0, 20, lambda _, u: diffuse(u), u), "x"), (X[..., 0],)


@correct
def ring_product():
    def f(a, b):
        def step(carry, _):
            total, b = carry
            b = lax.ppermute(b, "i", [(j, (j + 1) % 8) for j in range(8)])
            return (total + a @ b.T, b), None

        return lax.scan(step, (a @ b.T, b), None, length=7)[0][0]

    return pmap(f, "i"), (X, X)


@correct
def transposed_over_lanes():
    return pmap(lambda x: lax.all_to_all(x, "i", 0, 0), "i"), (np.ones((8, 8, 3), np.float32),)


@correct
def all_lanes_agree_when_to_stop():
    def power(a):
        def more(state):
            return (state[1] > 1e-4) & (state[2] < 100)

        def step(state):
            v, _, i = state
            w = lax.psum(a.T @ (a @ v), "rows")
            w = w / jnp.linalg.norm(w)
            return w, jnp.abs(w - v).max(), i + 1

        return lax.while_loop(more, step, (jnp.ones(3), jnp.float32(1), 0))[0]

    return pmap(power, "rows", out_axes=None), (X,)


@correct
def condition_that_is_reduced():
    def step(w, x, y):
        value, g = value_and_grad(mse)(w, x, y)
        finite = lax.pmin(jnp.isfinite(value).astype(jnp.int32), "i") > 0
        return lax.cond(finite, lambda: w - 0.1 * lax.pmean(g, "i"), lambda: w)

    return pmap(step, "i", in_axes=(None, 0, 0), out_axes=None), (W, X, Y)


@correct
def condition_without_collective():
    def f(x):
        y = lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)
        return lax.psum(y, "i")

    return pmap(f, "i", out_axes=None), (X,)


@correct
def clustering():
    def step(centers, x):
        near = jnp.argmin(((x[:, None] - centers) ** 2).sum(-1), axis=1)
        hot = nn.one_hot(near, centers.shape[0])
        total, count = lax.psum((hot.T @ x, hot.sum(0)), "i")
        return total / jnp.maximum(count[:, None], 1)

    def fit(centers, x):
        return lax.fori_loop(0, 10, lambda _, c: step(c, x), centers)

    return pmap(fit, "i", in_axes=(None, 0), out_axes=None), (X[0], X)


@correct
def ensemble_without_communication():
    def step(w, x, y):
        loss, g = value_and_grad(mse)(w, x, y)
        return w - 0.1 * g, loss

    return pmap(step, in_axes=(0, None, None)), (replicate(W), X[0], Y[0])


@correct
def lanes_in_lanes():
    def f(x):
        return vmap(lambda v: v - lax.pmean(v, ("i", "j")), axis_name="j")(x)

    return pmap(f, "i"), (X,)


@correct
def fewer_lanes_than_devices():
    return pmap(jnp.sin), (np.ones((3, 2), np.float32),)


@correct
def groups_of_lanes():
    pairs = [[0, 1], [2, 3], [4, 5], [6, 7]]
    return pmap(lambda x: lax.psum(lax.psum(x, "i", axis_index_groups=pairs), "i") / 2, "i"), (X,)


@correct
def environments():
    def rollout(w, state, key):
        def step(carry, key):
            s, total = carry
            action = jnp.tanh(s @ w) + 0.1 * random.normal(key, ())
            s = 0.9 * s + 0.1 * action
            return (s, total - jnp.sum(s**2)), s

        (state, total), _ = lax.scan(step, (state, 0.0), random.split(key, 20))
        return state, lax.pmean(total, "env")

    return pmap(rollout, "env", in_axes=(None, 0, 0), out_axes=(0, None)), (
        W, np.ones((8, 3), np.float32), random.split(random.key(0), 8),
    )  # fmt: skip


@correct
def prints_once():
    def f(x):
        total = lax.psum(x.sum(), "i")
        debug.print("total {}", total)
        return x / total

    return pmap(f, "i"), (X,)


@correct
def tensor_parallel_with_rules():
    @custom_vjp
    def enter(x):
        return x

    enter.defvjp(lambda x: (x, None), lambda _, g: (lax.psum(g, "m"),))

    @custom_vjp
    def leave(x):
        return lax.psum(x, "m")

    leave.defvjp(lambda x: (lax.psum(x, "m"), None), lambda _, g: (g,))

    def step(a, b, x):
        def loss(ab):
            a, b = ab
            return jnp.mean(leave(jnp.tanh(enter(x) @ a) @ b) ** 2)

        value, (ga, gb) = value_and_grad(loss)((a, b))
        return a - 0.1 * ga, b - 0.1 * gb, value

    return pmap(step, "m", in_axes=(0, 0, None), out_axes=(0, 0, None)), (
        np.ones((8, 3, 2), np.float32), np.ones((8, 2), np.float32), X[0],
    )  # fmt: skip


# ---- shard_map and meshes -----------------------------------------------------------------------


def mesh():
    return phalanx.make_mesh((phalanx.device_count(),), ("d",))


@correct
def sharded_mean():
    f = shard_map(lambda x: lax.pmean(x.mean(0), "d"), mesh=mesh(), in_specs=P("d"), out_specs=P())
    return f, (X,)


@correct
def sharded_training():
    def loss(w, x, y):
        return lax.pmean(mse(w, x[0], y[0]), "d")

    sharded = shard_map(loss, mesh=mesh(), in_specs=(P(), P("d"), P("d")), out_specs=P())
    return jit(lambda w, x, y: w - 0.1 * grad(sharded)(w, x, y)), (W, X, Y)


@correct
def sharded_training_inside():
    def step(w, x, y):
        value, g = value_and_grad(lambda w: lax.pmean(mse(w, x[0], y[0]), "d"))(w)
        return w - 0.1 * g, value

    specs = P(), P("d"), P("d")
    return jit(shard_map(step, mesh=mesh(), in_specs=specs, out_specs=(P(), P()))), (W, X, Y)


@correct
def sums_of_gradients_of_blocks():
    def step(w, x, y):
        value, g = value_and_grad(mse)(w, x[0], y[0])
        return w - 0.1 * g / phalanx.device_count(), lax.pmean(value, "d")

    specs = P(), P("d"), P("d")
    return jit(shard_map(step, mesh=mesh(), in_specs=specs, out_specs=(P(), P()))), (W, X, Y)


@correct
def averaged_although_it_is_the_mean():
    def step(w, x, y):
        value, g = value_and_grad(lambda w: lax.pmean(mse(w, x[0], y[0]), "d"))(w)
        return w - 0.1 * lax.pmean(g, "d"), value

    specs = P(), P("d"), P("d")
    return jit(shard_map(step, mesh=mesh(), in_specs=specs, out_specs=(P(), P()))), (W, X, Y)


@correct
def sharded_without_checks():
    def f(x):
        return lax.psum(x.sum(0), "d"), x * 2

    return shard_map(f, mesh=mesh(), in_specs=P("d"), out_specs=(P(), P("d")), check_vma=False), (
        X,
    )


@correct
def ring_sum_without_checks():
    def f(x):
        total, n = x, phalanx.device_count()
        for _ in range(n - 1):
            x = lax.ppermute(x, "d", [(i, (i + 1) % n) for i in range(n)])
            total = total + x
        return total

    return shard_map(f, mesh=mesh(), in_specs=P("d"), out_specs=P(), check_vma=False), (X,)


@correct
def product_in_blocks():
    def f(a, b):
        return lax.psum(a @ b, "d")

    n = phalanx.device_count()
    specs = P(None, "d"), P("d")
    return shard_map(f, mesh=mesh(), in_specs=specs, out_specs=P()), (
        np.ones((4, 2 * n), np.float32), np.ones((2 * n, 3), np.float32),
    )  # fmt: skip


@correct
def noise_of_own_keys_in_blocks():
    def f(key, x):
        key = random.fold_in(key, lax.axis_index("d"))
        return x + random.normal(key, x.shape)

    return shard_map(f, mesh=mesh(), in_specs=(P(), P("d")), out_specs=P("d")), (random.key(0), X)


@correct
def lanes_of_large_state():
    @functools.partial(pmap, axis_name="i", in_axes=(None, 0), out_axes=None, donate_argnums=0)
    def step(w, x):
        return w - 0.1 * lax.pmean(grad(lambda w: jnp.mean(jnp.tanh(x @ w)))(w), "i")

    return step, (
        ShapeDtypeStruct((2048, 8192), "float32"), ShapeDtypeStruct((8, 4, 2048), "float32"),
    )  # fmt: skip
