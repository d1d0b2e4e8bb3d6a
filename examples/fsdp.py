"""Fully sharded parameters: no device holds a whole layer, or a whole state of the optimizer.

The parameters, the gradients and the moments of Adam are cut over the same devices as the batch.
Nothing in the step speaks of devices: `jit` is told how its arguments and results lie, and the
compiler gathers a layer where it is needed, and leaves every device its part of the gradient.

    python examples/fsdp.py
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # of a CPU

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, jit, tree, value_and_grad

WIDTH, LAYERS, BATCH = 64, 4, 32
RATE, DECAYS = 1e-2, (0.9, 0.999)


def init(seed=0):
    """Parameters and the moments of their gradients, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    params = [
        {
            "weights": np.float32(rng.normal(0, WIDTH**-0.5, (WIDTH, WIDTH))),
            "bias": np.zeros(WIDTH, np.float32),
        }
        for _ in range(LAYERS)
    ]
    still = tree.map(np.zeros_like, params)
    return {"params": params, "mean": still, "square": still, "steps": np.float32(0)}


def predict(params, x):
    """Rows x after all layers."""
    for layer in params:
        x = x + jnp.tanh(x @ layer["weights"] + layer["bias"])
    return x


def loss(params, x, y):
    """The mean square distance."""
    return jnp.mean((predict(params, x) - y) ** 2)


def step(state, x, y):
    """One step of Adam, and the loss before."""
    value, grads = value_and_grad(loss)(state["params"], x, y)
    steps = state["steps"] + 1

    def running(decay, old, new):
        return tree.map(lambda m, g: decay * m + (1 - decay) * g, old, new)

    mean = running(DECAYS[0], state["mean"], grads)
    square = running(DECAYS[1], state["square"], tree.map(jnp.square, grads))
    unbiased = [1 / (1 - decay**steps) for decay in DECAYS]

    def moved(p, m, s):
        return p - RATE * m * unbiased[0] / (jnp.sqrt(s * unbiased[1]) + 1e-8)

    params = tree.map(moved, state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square, "steps": steps}, value


def fully_sharded(mesh, state):
    """How each array of the state lies: cut in its first dimension, numbers everywhere."""
    return tree.map(lambda x: NamedSharding(mesh, P("data") if x.ndim else P()), state)


def sharded_step(mesh, state):
    """The step from a sharded state and a sharded batch to the next state."""
    shardings, rows = fully_sharded(mesh, state), NamedSharding(mesh, P("data"))
    return jit(
        step,
        in_shardings=(shardings, rows, rows),
        out_shardings=(shardings, NamedSharding(mesh, P())),
        donate_argnums=0,
    )


def batches(count, seed=1):
    """Rows, and the same rows shifted by a place."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = np.float32(rng.normal(size=(BATCH, WIDTH)))
        yield x, np.roll(x, 1, axis=1)


def train(step, state, steps=5):
    """The loss before each step, and the last state."""
    losses = []
    for x, y in batches(steps):
        state, value = step(state, x, y)
        losses.append(float(value))
    return losses, state


def main():
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("data",))
    state = init()
    alone, _ = train(jit(step), state)
    placed = phalanx.device_put(state, fully_sharded(mesh, state))
    cut, last = train(sharded_step(mesh, state), placed)
    print("one device ", *(f"{value:.5f}" for value in alone))
    print("fully cut  ", *(f"{value:.5f}" for value in cut))
    held = sum(x.addressable_shards[0].data.nbytes for x in tree.leaves(last))
    print(f"a device holds {held} of {sum(x.nbytes for x in tree.leaves(last))} bytes")


if __name__ == "__main__":
    main()
