"""Handwritten digits: a small network, trained by eight lanes together.

Every lane differentiates the loss of its own part of each batch; `pmean` makes one gradient of
the parts, so that all lanes take the same step. The lanes share whatever devices there are.

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
BATCH, RATE, MOMENTUM = 120, 0.1, 0.9


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


def logits(params, images):
    """Images [n, 64] to scores [n, 10]."""
    *hidden, last = params
    for layer in hidden:
        images = nn.relu(images @ layer["weights"] + layer["bias"])
    return images @ last["weights"] + last["bias"]


def loss(params, images, labels):
    """Mean cross-entropy."""
    log_likelihood = nn.log_softmax(logits(params, images)) * nn.one_hot(labels, 10)
    return -jnp.mean(jnp.sum(log_likelihood, axis=-1))


def step(params, velocity, rate, images, labels):
    """Momentum SGD; runs in every lane, on that lane's part of the batch."""
    value, grads = phalanx.value_and_grad(loss)(params, images, labels)
    value, grads = lax.pmean((value, grads), "batch")
    velocity = phalanx.tree.map(lambda v, g: MOMENTUM * v + g, velocity, grads)
    params = phalanx.tree.map(lambda p, v: p - rate * v, params, velocity)
    return params, velocity, value


@phalanx.jit
def accuracy(params, images, labels):
    return jnp.mean(logits(params, images).argmax(-1) == labels)


def train(lanes=8, devices=None, epochs=30, batch=BATCH, seed=0):
    """Yields parameters, training loss and test accuracy after every epoch."""
    (images, labels), test = load()
    in_axes = (None, None, None, 0, 0)  # the same parameters everywhere, a part of the batch each
    parallel_step = phalanx.pmap(step, "batch", in_axes=in_axes, out_axes=None, devices=devices)
    params = init(random.key(seed))
    velocity = phalanx.tree.map(jnp.zeros_like, params)
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        rate, losses = np.float32(RATE * (1 - epoch / epochs)), []
        order = rng.permutation(len(labels))[: len(labels) // batch * batch]
        for i in order.reshape(-1, lanes, batch // lanes):
            params, velocity, value = parallel_step(params, velocity, rate, images[i], labels[i])
            losses.append(value)
        yield params, float(np.mean(losses)), float(accuracy(params, *test))


if __name__ == "__main__":
    for epoch, (_, value, correct) in enumerate(train(), 1):
        print(f"epoch {epoch:2}   loss {value:.4f}   test accuracy {correct:.2%}")
