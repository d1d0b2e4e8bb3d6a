# FAULTY (b): the evaluation returns one lane's accuracy through out_axes=None without reduction,
# and it picks the best checkpoint
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

AX = "data"


def conv_features(p, x):
    windows = jnp.stack([x[:, i : i + 6] for i in range(3)], axis=-1)
    h = nn.relu(windows @ p["filt"])
    return h.mean(axis=1)


def logits_fn(p, x):
    return conv_features(p, x) @ p["head"] + p["bias"]


def xent(p, x, y):
    z = logits_fn(p, x)
    return jnp.mean(nn.logsumexp(z, axis=-1) - z[jnp.arange(z.shape[0]), y])


def train(p, ema, x, y):
    loss, g = jax.value_and_grad(xent)(p, x, y)
    loss, g = lax.pmean(loss, AX), lax.pmean(g, AX)
    p = jax.tree.map(lambda a, b: a - 0.3 * b, p, g)
    ema = jax.tree.map(lambda e, a: e + 0.2 * (a - e), ema, p)
    return p, ema, loss


def evaluate(p, x, y):
    correct = jnp.argmax(logits_fn(p, x), axis=-1) == y
    return jnp.mean(correct.astype(jnp.float32))


train_step = jax.pmap(train, axis_name=AX, in_axes=(None, None, 0, 0), out_axes=None)
eval_step = jax.pmap(evaluate, axis_name=AX, in_axes=(None, 0, 0), out_axes=None)


def make_split(rng, n, per):
    y = rng.randint(0, 2, size=(n, per)).astype(np.int32)
    ramp = np.linspace(-1, 1, 8)
    x = np.where(y[..., None] == 1, np.sin(6 * ramp), np.sin(2 * ramp))
    return (x + 0.5 * rng.randn(n, per, 8)).astype(np.float32), y


def main():
    n = jax.local_device_count()
    k1, k2 = random.split(random.PRNGKey(6))
    p = {
        "filt": random.normal(k1, (3, 12)),
        "head": 0.1 * random.normal(k2, (12, 2)),
        "bias": jnp.zeros(2),
    }
    ema = p
    rng = np.random.RandomState(1)
    x_val, y_val = make_split(rng, n, 16)
    best_acc, best = -1.0, None
    for epoch in range(4):
        for _ in range(3):
            p, ema, loss = train_step(p, ema, *make_split(rng, n, 8))
        acc = float(eval_step(ema, x_val, y_val))
        if acc > best_acc:
            best_acc, best = acc, ema
        print(epoch, "loss", float(loss), "val acc", acc, "best", best_acc)


if __name__ == "__main__":
    main()
