# RIGHT: running statistics are kept per lane while training and averaged over the lanes before
# they are used for evaluation
from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

tree_map = jax.tree_util.tree_map


def forward(params, stats, x, train):
    h = x @ params["w0"]
    if train:
        mu, var = h.mean(0), h.var(0)
        stats = {"mean": 0.9 * stats["mean"] + 0.1 * mu, "var": 0.9 * stats["var"] + 0.1 * var}
    else:
        mu, var = stats["mean"], stats["var"]
    h = params["gamma"] * (h - mu) * lax.rsqrt(var + 1e-5) + params["beta"]
    return nn.relu(h) @ params["w1"], stats


def loss_fn(params, stats, x, y):
    logits, stats = forward(params, stats, x, train=True)
    logp = nn.log_softmax(logits)
    return -jnp.mean(logp[jnp.arange(y.shape[0]), y]), stats


@partial(jax.pmap, axis_name="batch")
def train_step(params, stats, x, y):
    (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, stats, x, y)
    grads = lax.pmean(grads, "batch")
    params = tree_map(lambda p, g: p - 0.1 * g, params, grads)
    return params, stats, lax.pmean(loss, "batch")


@partial(jax.pmap, axis_name="batch")
def eval_step(params, stats, x, y):
    logits, _ = forward(params, stats, x, train=False)
    return lax.psum(jnp.sum(logits.argmax(-1) == y), "batch")


cross_lane_mean = jax.pmap(lambda t: lax.pmean(t, "b"), axis_name="b")


def main():
    n = jax.local_device_count()
    ks = random.split(random.PRNGKey(2), 2)
    params = {
        "w0": random.normal(ks[0], (6, 20)),
        "w1": 0.1 * random.normal(ks[1], (20, 4)),
        "gamma": jnp.ones(20),
        "beta": jnp.zeros(20),
    }
    stats = {"mean": jnp.zeros(20), "var": jnp.ones(20)}
    params, stats = tree_map(lambda a: jnp.stack([a] * n), (params, stats))
    rng = np.random.RandomState(0)
    proj = rng.randn(6, 4)

    def draw():
        x = rng.randn(n, 12, 6).astype(np.float32)
        return x, (x @ proj).argmax(-1).astype(np.int32)

    for epoch in range(2):
        for _ in range(5):
            params, stats, loss = train_step(params, stats, *draw())
        stats = cross_lane_mean(stats)
        hits = eval_step(params, stats, *draw())
        print(epoch, "loss", float(loss[0]), "acc", int(hits[0]) / (12 * n))


if __name__ == "__main__":
    main()
