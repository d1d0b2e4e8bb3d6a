# RIGHT: a sweep over learning rates, one trial per device; the lanes are independent and the host
# picks the best
from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax


def predict(theta, x):
    h = jnp.tanh(x @ theta["a"])
    return h @ theta["c"]


def objective(theta, decay, x, y):
    err = predict(theta, x) - y
    return 0.5 * jnp.mean(err**2) + decay * jnp.sum(theta["c"] ** 2)


@partial(jax.pmap, in_axes=(0, 0, None, None, None, None))
def trial(theta, hp, x, y, x_val, y_val):
    lr, decay = hp["lr"], hp["decay"]

    def update(carry, _):
        theta, best, patience = carry
        g = jax.grad(objective)(theta, decay, x, y)
        alive = (patience > 0).astype(x.dtype)
        theta = jax.tree_util.tree_map(lambda p, d: p - alive * lr * d, theta, g)
        val = jnp.mean((predict(theta, x_val) - y_val) ** 2)
        patience = jnp.where(val < best, 3, patience - 1)
        best = jnp.minimum(best, val)
        return (theta, best, patience), val

    start = (theta, jnp.array(jnp.inf, x.dtype), jnp.array(3, jnp.int32))
    (theta, best, _), curve = lax.scan(update, start, None, length=20)
    return theta, best, curve


def main():
    n = jax.local_device_count()
    rng = np.random.default_rng(11)
    x = rng.normal(size=(48, 4)).astype(np.float32)
    y = np.tanh(x[:, 0] - 0.5 * x[:, 1]).astype(np.float32)
    theta = {
        "a": rng.normal(size=(4, 10)).astype(np.float32),
        "c": 0.1 * rng.normal(size=10).astype(np.float32),
    }
    theta = jax.tree_util.tree_map(lambda v: jnp.broadcast_to(v, (n,) + v.shape), theta)
    hp = {
        "lr": jnp.logspace(-3, 0.3, n, dtype=jnp.float32),
        "decay": jnp.full((n,), 1e-4, jnp.float32),
    }
    theta, best, curve = trial(theta, hp, x[:32], y[:32], x[32:], y[32:])
    winner = int(np.argmin(np.asarray(best)))
    chosen = jax.tree_util.tree_map(lambda v: v[winner], theta)
    print(
        "winner lr",
        float(hp["lr"][winner]),
        "val",
        float(best[winner]),
        "first",
        float(curve[winner, 0]),
    )
    print("norm", float(jnp.linalg.norm(chosen["c"])))


if __name__ == "__main__":
    main()
