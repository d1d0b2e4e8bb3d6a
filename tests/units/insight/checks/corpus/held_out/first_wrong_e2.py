# FAULTY (e): log of a sigmoid and log of one minus a sigmoid written out, which become log(0) for
# confident logits
import functools

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random


def logistic(t):
    return 1.0 / (1.0 + jnp.exp(-t))


def mlp(ws, x):
    *hidden, last = ws
    for w, b in hidden:
        x = jnp.maximum(x @ w + b, 0.0)
    return x @ last[0] + last[1]


def make_mlp(key, sizes):
    out = []
    for i, o in zip(sizes, sizes[1:]):
        key, sub = random.split(key)
        out.append((random.normal(sub, (i, o)) / jnp.sqrt(i), jnp.zeros(o)))
    return out


def d_objective(disc, gen, real, noise):
    p_real = logistic(mlp(disc, real))
    p_fake = logistic(mlp(disc, mlp(gen, noise)))
    return -jnp.mean(jnp.log(p_real)) - jnp.mean(jnp.log(1.0 - p_fake))


def g_objective(gen, disc, noise):
    return -jnp.mean(jnp.log(logistic(mlp(disc, mlp(gen, noise)))))


def synced(objective):
    @functools.wraps(objective)
    def run(*args):
        return lax.pmean(jax.value_and_grad(objective)(*args), axis_name="core")

    return run


@functools.partial(jax.pmap, axis_name="core")
def step(gen, disc, real, key):
    n1, n2 = (random.normal(k, (real.shape[0], 2)) for k in random.split(key))
    d_value, d_grad = synced(d_objective)(disc, gen, real, n1)
    disc = jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, disc, d_grad)
    g_value, g_grad = synced(g_objective)(gen, disc, n2)
    gen = jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, gen, g_grad)
    return gen, disc, jnp.stack([d_value, g_value])


def main():
    n = jax.local_device_count()
    lanes = lambda tree: jax.tree_util.tree_map(lambda a: jnp.broadcast_to(a, (n,) + a.shape), tree)
    gen = lanes(make_mlp(random.PRNGKey(0), [2, 16, 1]))
    disc = lanes(make_mlp(random.PRNGKey(1), [1, 16, 1]))
    rng = np.random.RandomState(5)
    for it in range(5):
        real = (3.0 + 0.5 * rng.randn(n, 16, 1)).astype(np.float32)
        keys = random.split(random.PRNGKey(50 + it), n)
        gen, disc, values = step(gen, disc, real, keys)
        print(it, np.asarray(values[0]).round(4))


if __name__ == "__main__":
    main()
