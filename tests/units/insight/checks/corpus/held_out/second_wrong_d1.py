# FAULTY (d): the running mean and variance are fed with the batch moments of the lane alone;
# gradients are pmean-ed but the statistics drift apart over lanes and lane 0's are evaluated.
from functools import partial
from typing import Any, NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

LANES = 8


class TrainState(NamedTuple):
    params: Any
    batch_stats: Any
    momentum: Any


def dense_init(key, n, m):
    return {"w": random.normal(key, (n, m)) * n**-0.5, "b": jnp.zeros((m,))}


def batch_norm(p, stats, x, train, decay=0.9):
    if train:
        mu = x.mean(axis=0)
        var = jnp.mean((x - mu) ** 2, axis=0)
        stats = {
            "mean": decay * stats["mean"] + (1 - decay) * mu,
            "var": decay * stats["var"] + (1 - decay) * var,
        }
    else:
        mu, var = stats["mean"], stats["var"]
    return (x - mu) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"], stats


def apply(params, stats, x, train):
    h = x @ params["l1"]["w"] + params["l1"]["b"]
    h, stats = batch_norm(params["bn"], stats, h, train)
    h = nn.relu(h)
    return h @ params["l2"]["w"] + params["l2"]["b"], stats


def loss_fn(params, stats, x, y):
    logits, stats = apply(params, stats, x, train=True)
    nll = -jnp.take_along_axis(nn.log_softmax(logits), y[:, None], axis=1)
    return nll.mean(), stats


@partial(jax.pmap, axis_name="batch")
def train_step(state, x, y):
    (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(
        state.params, state.batch_stats, x, y
    )
    grads = lax.pmean(grads, "batch")
    mom = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, state.momentum, grads)
    params = jax.tree_util.tree_map(lambda p, m: p - 0.05 * m, state.params, mom)
    return TrainState(params, stats, mom), lax.pmean(loss, "batch")


def main():
    k1, k2, kx, kt = random.split(random.PRNGKey(0), 4)
    params = {
        "l1": dense_init(k1, 6, 16),
        "bn": {"scale": jnp.ones(16), "shift": jnp.zeros(16)},
        "l2": dense_init(k2, 16, 3),
    }
    stats = {"mean": jnp.zeros(16), "var": jnp.ones(16)}
    state = TrainState(params, stats, jax.tree_util.tree_map(jnp.zeros_like, params))
    state = jax.tree_util.tree_map(lambda a: jnp.broadcast_to(a, (LANES,) + a.shape), state)
    x = random.normal(kx, (LANES, 8, 6)) + 0.5
    y = jnp.argmax(x @ random.normal(kt, (6, 3)), axis=-1)
    for _ in range(4):
        state, loss = train_step(state, x, y)
        print(float(loss[0]))
    single = jax.tree_util.tree_map(lambda a: a[0], state)
    logits, _ = apply(single.params, single.batch_stats, x.reshape(-1, 6), train=False)
    print("acc", float(jnp.mean(jnp.argmax(logits, -1) == y.reshape(-1))))


if __name__ == "__main__":
    main()
