"""Two mistakes: one that Phalanx refuses, and one that runs, and that `phalanx check` finds.

A linear model of digits, for one image. `apart` forgets that lanes must agree on the parameters:
each lane has a gradient of its own. In `together` all lanes drop the same pixels.

    python examples/planted.py
    phalanx check examples/planted.py
"""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn, random


def loss(weights, image, label):
    return -nn.log_softmax(image @ weights)[label]


def noisy_loss(weights, key, image, label):
    kept = random.bernoulli(key, 0.9, image.shape)
    return loss(weights, jnp.where(kept, image / 0.9, 0), label)


def apart(weights, key, image, label):
    return weights - 0.1 * phalanx.grad(loss)(weights, image, label)


def together(weights, key, image, label):
    gradient = phalanx.grad(noisy_loss)(weights, key, image, label)
    return weights - 0.1 * lax.pmean(gradient, "batch")


def mapped(step):
    return phalanx.pmap(step, "batch", in_axes=(None, None, 0, 0), out_axes=None)


def arguments(images=13):
    """Weights, a key, and images with their labels."""
    rng = np.random.default_rng(0)
    pixels = rng.uniform(size=(images, 64)).astype(np.float32)
    return jnp.zeros((64, 10)), random.key(0), pixels, rng.integers(0, 10, images, np.int32)


if __name__ == "__main__":
    weights = mapped(together)(*arguments())
    print(f"trained: mean magnitude of weights {float(jnp.abs(weights).mean()):.4f}")
    try:
        mapped(apart)(*arguments())
    except phalanx.errors.ReplicationError as error:
        print(f"refused: {error}")
