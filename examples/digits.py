"""Handwritten digits: a small network, trained by functions of one image.

`step` is written for one image. `pmap` runs it for all images of a batch, each in a lane of its
own, and `pmean` makes one gradient of theirs. The lanes share whatever devices there are, so that a
batch may have any size, as the last one of an epoch has.

    python examples/digits.py
    PHALANX_NUM_CPU_DEVICES=3 python examples/digits.py
"""

import itertools

import numpy as np
from sklearn.datasets import load_digits

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn, random

SIZES = (64, 256, 128, 10)
BATCH, RATE, MOMENTUM = 128, 0.1, 0.9


def load():
    """1797 scans of 8x8 pixels, shuffled: 1437 images and labels to learn from, 360 to test."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = np.float32(digits.data[order] / 16), np.int32(digits.target[order])
    return (images[360:], labels[360:]), (images[:360], labels[:360])


def init(key):
    """Three dense layers; the variance of the weights is 2 / fan-in."""
    params = []
    for m, n in itertools.pairwise(SIZES):
        key, subkey = random.split(key)
        weights = random.normal(subkey, (m, n)) * np.sqrt(2 / m)
        params.append({"weights": weights, "bias": jnp.zeros(n)})
    return params


def logits(params, image):
    """The scores of the ten digits, for an image of 64 pixels."""
    *hidden, last = params
    for layer in hidden:
        image = nn.relu(image @ layer["weights"] + layer["bias"])
    return image @ last["weights"] + last["bias"]


def loss(params, image, label):
    """Cross-entropy of one image."""
    return -nn.log_softmax(logits(params, image))[label]


def step(params, velocity, rate, image, label):
    """SGD with momentum; pmean averages over the batch."""
    value, grads = phalanx.value_and_grad(loss)(params, image, label)
    value, grads = lax.pmean((value, grads), "batch")
    velocity = phalanx.tree.map(lambda v, g: MOMENTUM * v + g, velocity, grads)
    params = phalanx.tree.map(lambda p, v: p - rate * v, params, velocity)
    return params, velocity, value


def over_a_batch(step, devices=None):
    """The step for images and labels of any number; parameters, velocity and rate are shared."""
    in_axes = (None, None, None, 0, 0)
    return phalanx.pmap(step, "batch", in_axes=in_axes, out_axes=None, devices=devices)


@phalanx.jit
def accuracy(params, images, labels):
    return jnp.mean(logits(params, images).argmax(-1) == labels)


def train(devices=None, epochs=30, batch=BATCH, seed=0):
    """Yields parameters, mean training loss and test accuracy after every epoch."""
    (images, labels), test = load()
    train_step = over_a_batch(step, devices)
    params = init(random.key(seed))
    velocity = phalanx.tree.map(jnp.zeros_like, params)
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        rate, total = np.float32(RATE * (1 - epoch / epochs)), 0.0
        order = rng.permutation(len(labels))
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]  # fewer at the end of an epoch
            params, velocity, value = train_step(params, velocity, rate, images[rows], labels[rows])
            total += float(value) * len(rows)
        yield params, total / len(order), float(accuracy(params, *test))


if __name__ == "__main__":
    for epoch, (_, value, correct) in enumerate(train(), 1):
        print(f"epoch {epoch:2}   loss {value:.4f}   test accuracy {correct:.2%}")
