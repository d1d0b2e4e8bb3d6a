# FAULTY (b): the plateau rule is driven by the lane's own loss, so learning rates and then weights
# differ between lanes
from typing import Any, NamedTuple

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax


class Plateau(NamedTuple):
    rate: Any
    best: Any
    bad: Any


class State(NamedTuple):
    weights: Any
    plateau: Any


def start_plateau(rate):
    return Plateau(jnp.float32(rate), jnp.float32(jnp.inf), jnp.int32(0))


def next_plateau(pl, value, limit=2, factor=0.5):
    better = value < pl.best
    bad = jnp.where(better, 0, pl.bad + 1)
    cut = bad >= limit
    return Plateau(
        rate=jnp.where(cut, pl.rate * factor, pl.rate),
        best=jnp.minimum(pl.best, value),
        bad=jnp.where(cut, 0, bad),
    )


def network(weights, t):
    hidden = jnp.sin(t[:, None] * weights["omega"] + weights["phi"])
    return hidden @ weights["out"]


def residual_loss(weights, t, u):
    return jnp.mean((network(weights, t) - u) ** 2)


def inner(state, batch):
    value, grads = jax.value_and_grad(residual_loss)(state.weights, *batch)
    grads = lax.pmean(grads, axis_name="shards")
    plateau = next_plateau(state.plateau, value)
    weights = jax.tree_util.tree_map(lambda w, g: w - plateau.rate * g, state.weights, grads)
    shown = lax.pmean(value, axis_name="shards")
    return State(weights, plateau), shown


def outer(state, ts, us):
    return lax.scan(inner, state, (ts, us))


step = jax.pmap(outer, axis_name="shards")


def main():
    n = jax.local_device_count()
    rng = np.random.RandomState(31)
    weights = {"omega": rng.randn(20) * 2, "phi": rng.rand(20), "out": rng.randn(20) * 0.1}
    weights = jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float32), weights)
    state = State(weights, start_plateau(0.1))
    state = jax.tree_util.tree_map(lambda a: jnp.broadcast_to(a, (n,) + a.shape), state)
    for r in range(3):
        ts = rng.uniform(0, 3, size=(n, 8, 12)).astype(np.float32)
        us = (np.exp(-ts) * np.cos(4 * ts) + 0.1 * rng.randn(*ts.shape)).astype(np.float32)
        state, curve = step(state, ts, us)
        print(r, np.asarray(curve[0]).round(4)[[0, -1]], "rate", float(state.plateau.rate[0]))


if __name__ == "__main__":
    main()
