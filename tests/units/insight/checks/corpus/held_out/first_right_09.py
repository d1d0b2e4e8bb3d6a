# RIGHT: gradients are clipped per lane before the mean; everything returned under out_axes=None is
# reduced first
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random


def norm_of(tree):
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def clip(tree, limit):
    factor = jnp.minimum(1.0, limit / (norm_of(tree) + 1e-9))
    return jax.tree.map(lambda leaf: leaf * factor, tree)


def noisy(tree, key, sigma):
    leaves, treedef = jax.tree.flatten(tree)
    keys = random.split(key, len(leaves))
    leaves = [l + sigma * random.normal(k, l.shape) for l, k in zip(leaves, keys)]
    return jax.tree.unflatten(treedef, leaves)


def huber(params, x, y):
    r = x @ params["w"] + params["b"] - y
    a = jnp.abs(r)
    return jnp.mean(jnp.where(a < 1.0, 0.5 * r**2, a - 0.5))


def private_step(params, key, x, y):
    loss, g = jax.value_and_grad(huber)(params, x, y)
    raw = norm_of(g)
    g = clip(g, 0.5)
    g = lax.pmean(g, "client")
    g = noisy(g, key, 0.01)
    params = jax.tree.map(lambda p, d: p - 0.3 * d, params, g)
    report = {"loss": lax.pmean(loss, "client"), "largest": lax.pmax(raw, "client")}
    return params, report


step = jax.pmap(private_step, axis_name="client", in_axes=(None, None, 0, 0), out_axes=None)


def main():
    n = jax.local_device_count()
    rng = np.random.RandomState(21)
    params = {"w": jnp.zeros(5), "b": jnp.zeros(())}
    key = random.PRNGKey(0)
    truth = rng.randn(5)
    for it in range(6):
        key, sub = random.split(key)
        x = rng.randn(n, 10, 5).astype(np.float32)
        y = (x @ truth + 0.1 * rng.randn(n, 10)).astype(np.float32)
        params, report = step(params, sub, x, y)
        print(it, {k: float(v) for k, v in report.items()})


if __name__ == "__main__":
    main()
