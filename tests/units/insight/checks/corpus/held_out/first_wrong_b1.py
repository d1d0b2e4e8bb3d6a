# FAULTY (b): the step returns the lane's own loss and accuracy, and lane 0 alone is logged and
# used for early stopping
from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn


def scores(w, x):
    return jnp.einsum("bd,dc->bc", x, w["kernel"]) + w["bias"]


def objective(w, x, y):
    logp = nn.log_softmax(scores(w, x), axis=-1)
    nll = -jnp.take_along_axis(logp, y[:, None], axis=-1)
    acc = (logp.argmax(-1) == y).astype(jnp.float32).mean()
    return nll.mean() + 1e-4 * jnp.sum(w["kernel"] ** 2), acc


@partial(jax.pmap, axis_name="i", donate_argnums=(0,))
def step(state, x, y):
    w, mu = state
    (loss, acc), grads = jax.value_and_grad(objective, has_aux=True)(w, x, y)
    grads = lax.pmean(grads, "i")
    mu = jax.tree.map(lambda m, g: 0.8 * m + g, mu, grads)
    w = jax.tree.map(lambda p, m: p - 0.1 * m, w, mu)
    return (w, mu), loss, acc


def fit(state, stream, patience=4):
    history, best, waited = [], float("inf"), 0
    for epoch, (x, y) in enumerate(stream):
        state, loss, acc = step(state, x, y)
        history.append((float(loss[0]), float(acc[0])))
        print("epoch %d loss %.4f acc %.3f" % ((epoch,) + history[-1]))
        if history[-1][0] < best - 1e-3:
            best, waited = history[-1][0], 0
        else:
            waited += 1
        if waited >= patience:
            print("stop")
            break
    return state, history


def stream(n, rounds, seed=0):
    rng = np.random.RandomState(seed)
    hidden = rng.randn(9, 3)
    for _ in range(rounds):
        x = rng.randn(n, 8, 9).astype(np.float32)
        yield x, np.argmax(x @ hidden + rng.gumbel(size=(n, 8, 3)), -1).astype(np.int32)


def main():
    n = jax.local_device_count()
    w = {"kernel": jnp.zeros((n, 9, 3)), "bias": jnp.zeros((n, 3))}
    mu = jax.tree.map(jnp.zeros_like, w)
    state, history = fit((w, mu), stream(n, 8))
    print(len(history), "epochs")


if __name__ == "__main__":
    main()
