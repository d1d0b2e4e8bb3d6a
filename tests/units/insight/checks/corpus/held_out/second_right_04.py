# RIGHT (near e): softmax is used for attention weights only; the logarithm is of a softplus
# intensity with an epsilon, and masked keys get a large negative score.
import math

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import nn, random

BINS, DIM = 12, 8


def init(key):
    names = ("read", "q", "k", "v", "rate")
    shapes = ((1, DIM), (DIM, DIM), (DIM, DIM), (DIM, DIM), (DIM, 1))
    keys = random.split(key, len(names))
    return {n: random.normal(k, s) / math.sqrt(s[0]) for n, s, k in zip(names, shapes, keys)}


def attend(p, x):
    scores = jnp.einsum("td,sd->ts", x @ p["q"], x @ p["k"]) / math.sqrt(DIM)
    visible = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), dtype=bool))
    weights = nn.softmax(jnp.where(visible, scores, -1e9), axis=-1)
    return weights @ (x @ p["v"]), weights


def intensity(p, counts):
    x = jnp.log1p(counts)[:, None] @ p["read"]
    pooled, weights = attend(p, x)
    rate = nn.softplus(pooled @ p["rate"])[:, 0] + 1e-4
    return rate, weights


def poisson_nll(p, counts):
    rate, weights = intensity(p, counts[:-1])
    target = counts[1:]
    spread = jnp.mean(jnp.max(weights, axis=-1))
    return jnp.mean(rate - target * jnp.log(rate)), spread


def batched(p, all_counts):
    nll, spread = jax.vmap(poisson_nll, in_axes=(None, 0))(p, all_counts)
    return nll.mean(), spread.mean()


@jax.jit
def step(p, all_counts):
    (nll, spread), g = jax.value_and_grad(batched, has_aux=True)(p, all_counts)
    return jax.tree_util.tree_map(lambda a, b: a - 0.05 * b, p, g), nll, spread


def main():
    k_p, k_data = random.split(random.PRNGKey(23))
    p = init(k_p)
    phase = random.uniform(k_data, (10, 1), maxval=2 * math.pi)
    counts = jnp.round(2.0 + 2.0 * jnp.sin(phase + 0.6 * jnp.arange(BINS)))
    for _ in range(5):
        p, nll, spread = step(p, counts)
        print(float(nll), float(spread))


if __name__ == "__main__":
    main()
