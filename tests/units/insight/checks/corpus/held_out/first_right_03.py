# RIGHT: local SGD, the weights are averaged every K steps
from typing import NamedTuple

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

K = 4


class Worker(NamedTuple):
    w: object
    b: object
    t: object


def mse(wb, x, y):
    w, b = wb
    return jnp.mean((jnp.tanh(x @ w) @ b - y) ** 2)


def one_local_step(worker, batch):
    x, y = batch
    loss, (gw, gb) = jax.value_and_grad(mse)((worker.w, worker.b), x, y)
    w = worker.w - 0.05 * gw
    b = worker.b - 0.05 * gb
    t = worker.t + 1
    due = (t % K) == 0
    w = jnp.where(due, lax.pmean(w, "worker"), w)
    b = jnp.where(due, lax.pmean(b, "worker"), b)
    return Worker(w, b, t), loss


def run_round(worker, xs, ys):
    worker, losses = lax.scan(one_local_step, worker, (xs, ys))
    return worker, lax.pmean(losses.mean(), axis_name="worker")


step = jax.pmap(run_round, axis_name="worker")


def main():
    n = jax.local_device_count()
    rng = np.random.RandomState(3)
    w = jnp.asarray(rng.randn(5, 8) * 0.5, jnp.float32)
    b = jnp.asarray(rng.randn(8) * 0.5, jnp.float32)
    worker = Worker(jnp.stack([w] * n), jnp.stack([b] * n), jnp.zeros(n, jnp.int32))
    truth = rng.randn(5)
    for r in range(3):
        xs = rng.randn(n, 2 * K, 16, 5).astype(np.float32)
        ys = np.sin(xs @ truth).astype(np.float32)
        worker, loss = step(worker, xs, ys)
        print("round", r, "loss", float(loss[0]), "spread", float(jnp.std(worker.b, axis=0).max()))


if __name__ == "__main__":
    main()
