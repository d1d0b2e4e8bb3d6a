# RIGHT: the finiteness test is on gradients that were already averaged, so every lane decides
# alike about the loss scale
import dataclasses

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

AXIS = "replica"


@dataclasses.dataclass(frozen=True)
class ScalePolicy:
    grow: float = 2.0
    shrink: float = 0.5
    every: int = 3


def all_finite(tree):
    flags = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree_util.tree_leaves(tree)]
    return jnp.all(jnp.stack(flags))


def loss_half(params, x, y):
    p = jax.tree_util.tree_map(lambda a: a.astype(jnp.float16), params)
    out = jnp.tanh(x.astype(jnp.float16) @ p["k"]) @ p["v"]
    return jnp.mean((out.astype(jnp.float32) - y) ** 2)


def build(policy, lr):
    def step(params, scale, good, x, y):
        scaled = lambda p: loss_half(p, x, y) * scale
        value, grads = jax.value_and_grad(scaled)(params)
        grads = lax.pmean(grads, AXIS)
        ok = all_finite(grads)
        grads = jax.tree_util.tree_map(lambda g: jnp.where(ok, g / scale, 0.0), grads)
        params = jax.tree_util.tree_map(lambda p, g: p - lr * g, params, grads)
        good = jnp.where(ok, good + 1, 0)
        bump = good >= policy.every
        new_scale = jnp.where(
            ok, jnp.where(bump, scale * policy.grow, scale), scale * policy.shrink
        )
        good = jnp.where(bump, 0, good)
        return params, new_scale, good, lax.pmean(value / scale, AXIS)

    return jax.pmap(step, axis_name=AXIS)


def main():
    n = jax.local_device_count()
    rng = np.random.RandomState(8)
    single = {"k": rng.randn(4, 8), "v": rng.randn(8)}
    params = {
        name: jnp.asarray(np.tile(a, (n,) + (1,) * a.ndim), jnp.float32)
        for name, a in single.items()
    }
    scale = jnp.full((n,), 2.0**15, jnp.float32)
    good = jnp.zeros((n,), jnp.int32)
    step = build(ScalePolicy(), lr=0.05)
    for it in range(10):
        x = rng.randn(n, 8, 4).astype(np.float32)
        y = x.sum(-1).astype(np.float32)
        params, scale, good, loss = step(params, scale, good, x, y)
        print(it, float(loss[0]), "scale", float(scale[0]))


if __name__ == "__main__":
    main()
