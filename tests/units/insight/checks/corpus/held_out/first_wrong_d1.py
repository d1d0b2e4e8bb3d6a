# FAULTY (d): running mean and variance take the lane's own batch statistics but are treated as
# replicated, lane 0's serve evaluation
from typing import Any, NamedTuple

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


class BNState(NamedTuple):
    mean: Any
    var: Any


class TrainState(NamedTuple):
    params: Any
    velocity: Any
    bn: BNState


class BatchNorm:
    momentum = 0.9

    def __call__(self, p, state, x, training):
        if training:
            mean = jnp.mean(x, axis=0)
            var = jnp.mean(jnp.square(x - mean), axis=0)
            blend = lambda old, new: self.momentum * old + (1 - self.momentum) * new
            new_state = BNState(blend(state.mean, mean), blend(state.var, var))
        else:
            mean, var, new_state = state.mean, state.var, state
        return p["scale"] * (x - mean) / jnp.sqrt(var + 1e-5) + p["offset"], new_state


norm = BatchNorm()


def net(params, bn, x, training):
    x, bn = norm(params["bn"], bn, x @ params["w1"], training)
    return nn.relu(x) @ params["w2"], bn


def loss_fn(params, bn, x, y):
    out, bn = net(params, bn, x, True)
    return jnp.mean(nn.softplus(out[:, 0]) - y * out[:, 0]), bn


def train_step(ts, x, y):
    (loss, bn), g = jax.value_and_grad(loss_fn, has_aux=True)(ts.params, ts.bn, x, y)
    g = lax.pmean(g, "replicas")
    velocity = jax.tree.map(lambda v, d: 0.9 * v + d, ts.velocity, g)
    params = jax.tree.map(lambda p, v: p - 0.05 * v, ts.params, velocity)
    return TrainState(params, velocity, bn), lax.pmean(loss, "replicas")


step = jax.pmap(train_step, axis_name="replicas")


def main():
    n = jax.local_device_count()
    k1, k2 = random.split(random.PRNGKey(8))
    params = {
        "w1": random.normal(k1, (5, 16)),
        "w2": 0.2 * random.normal(k2, (16, 1)),
        "bn": {"scale": jnp.ones(16), "offset": jnp.zeros(16)},
    }
    ts = TrainState(
        params, jax.tree.map(jnp.zeros_like, params), BNState(jnp.zeros(16), jnp.ones(16))
    )
    ts = jax.tree.map(lambda a: jnp.stack([a] * n), ts)
    rng = np.random.RandomState(0)
    offset = rng.randn(n, 1, 5)
    for it in range(6):
        x = (rng.randn(n, 12, 5) + offset).astype(np.float32)
        y = (x.sum(-1) > 0).astype(np.float32)
        ts, loss = step(ts, x, y)
        print(it, float(loss[0]))
    final = jax.tree.map(lambda a: a[0], ts)
    out, _ = net(final.params, final.bn, x.reshape(-1, 5), False)
    print("eval acc", float(jnp.mean((out[:, 0] > 0) == y.reshape(-1))))


if __name__ == "__main__":
    main()
