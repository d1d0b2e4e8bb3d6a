"""Handwritten digits, from data to a plot: a whole training program.

A convolutional network with dropout, trained in bfloat16 by AdamW with a schedule. The program
evaluates with uneven batches, saves checkpoints and goes on from the last one when it is started
again, logs, and draws a plot. It runs on one device, on several, and in several processes:

    python examples/train.py
    PHALANX_NUM_CPU_DEVICES=8 python examples/train.py
    phalanx launch -n 4 examples/train.py

Needs the extras of Phalanx that are called demo and checkpoint.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.progress import track
from sklearn.datasets import load_digits

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn, random, training, tree
from phalanx.experimental import checkpoint

CHANNELS, KEPT, DECAY, PEAK, WARMUP = (16, 32), 0.9, 1e-3, 1e-2, 10


def load():
    """1797 scans of 8x8 pixels: 1437 images and labels to learn from, 360 to test."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = np.float32(digits.images[order] / 16), np.int32(digits.target[order])
    return (images[360:], labels[360:]), (images[:360], labels[:360])


# ---- the model, of one image ----------------------------------------------------------------


def init(key):
    """Two convolutions of 3x3 pixels and a dense layer; weights of variance 2 / fan-in."""
    keys, (first, second) = random.split(key, 3), CHANNELS
    he = nn.initializers.he_normal(in_axis=-2, out_axis=-1)
    return {
        "conv": [he(keys[0], (3, 3, 1, first)), he(keys[1], (3, 3, first, second))],
        "dense": {"weights": he(keys[2], (4 * second, 10)), "bias": jnp.zeros(10)},
    }


def logits(params, image, key=None):
    """The scores of the ten digits for one image [8, 8], with dropout if there is a key."""
    x = image[None, :, :, None]
    for kernel in params["conv"]:
        x = lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = lax.reduce_window(nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.ravel()
    if key is not None:
        x = jnp.where(random.bernoulli(key, KEPT, x.shape), x / KEPT, 0)
    return x @ params["dense"]["weights"] + params["dense"]["bias"]


def loss(params, image, label, key):
    """Cross-entropy of one image. Parameters are float32; all else is computed in bfloat16."""
    params, image = tree.map(lambda x: x.astype(jnp.bfloat16), (params, image))
    return training.cross_entropy(logits(params, image, key), label)


# ---- the optimizer --------------------------------------------------------------------------


def rate(step, steps):
    """Linear warmup, then half a cosine down to zero."""
    done = jnp.clip((step - WARMUP) / max(steps - WARMUP, 1), 0, 1)
    return PEAK * jnp.minimum(step / WARMUP, 0.5 * (1 + jnp.cos(jnp.pi * done)))


def adamw(grads, state, steps, b1=0.9, b2=0.999):
    """The state after a step of Adam; weights, but not biases, decay."""
    count = state.step + 1
    mean, square = state.optimizer
    mean = tree.map(lambda m, g: b1 * m + (1 - b1) * g, mean, grads)
    square = tree.map(lambda s, g: b2 * s + (1 - b2) * g * g, square, grads)

    def move(p, m, s):
        m, s = m / (1 - b1**count), s / (1 - b2**count)
        return p - rate(count, steps) * (m / (jnp.sqrt(s) + 1e-8) + DECAY * p * (p.ndim > 1))

    return state.next(params=tree.map(move, state.params, mean, square), optimizer=(mean, square))


# ---- training and testing -------------------------------------------------------------------


def train_step(state, image, label, of, steps):
    """A step, as one image sees it; pmean makes one gradient of those of the batch."""
    key = random.fold_in(state.step_key, lax.axis_index("batch"))
    value, grads = phalanx.value_and_grad(loss)(state.params, image, label, key)
    value, grads = lax.pmean((value, grads), "batch")
    return adamw(grads, state, steps), value


def test_step(params, image, label, of):
    """Loss and accuracy of one image, added up over the batch."""
    scores = logits(params, image)
    value, right = training.cross_entropy(scores, label), scores.argmax() == label
    return lax.psum(
        {"test loss": training.Mean.of(value), "test accuracy": training.Mean.of(right)}, "batch"
    )


def over_batches(step, statics, **options):
    """``step`` for batches of any number of images. Static arguments come last: ``of``, the size of
    the whole batch, is one of them, since a process sees its own rows alone."""
    in_axes = (None, 0, 0, *[None] * statics)
    return phalanx.pmap(
        step, "batch", in_axes=in_axes, out_axes=None,
        static_broadcasted_argnums=tuple(range(3, 3 + statics)), **options,
    )  # fmt: skip


def batches(data, size, **order):
    """Images and labels of this process, and how many there are in all processes."""
    images, labels = data
    for rows, of in training.even_batches(len(labels), size, **order):
        yield images[rows], labels[rows], of


def evaluate(step, params, data, size):
    """Exact means over all of ``data``, the short last batch included."""
    found = {"test loss": training.Mean(), "test accuracy": training.Mean()}
    for batch in batches(data, size):
        found = tree.map(jnp.add, found, step(params, *batch))
    return {name: float(mean.value) for name, mean in found.items()}


def train(folder, epochs=8, size=96, lanes_at_once=None, seed=0):
    """Train, or go on training, and return what was logged for every epoch."""
    data, test = load()
    steps = epochs * len(training.even_batches(len(data[1]), size))
    step = over_batches(train_step, 2, lanes_at_once=lanes_at_once, donate_argnums=0)
    count = over_batches(test_step, 1)
    log = Log(folder)
    params = init(random.key(seed))
    moments = tree.map(jnp.zeros_like, params), tree.map(jnp.zeros_like, params)
    state = training.TrainState(params, moments, random.key(seed + 1))
    with checkpoint.Manager(folder / "checkpoints", keep=2) as manager:
        first = 0
        if (latest := manager.latest()) is not None:
            first, state = latest, manager.restore(state)
        for epoch in range(first, epochs):
            mean = training.Mean()
            for images, labels, of in log.progress(
                list(batches(data, size, seed=seed, epoch=epoch)), f"epoch {epoch + 1}"
            ):
                state, value = step(state, images, labels, of, steps)
                mean += training.Mean(value * of, of)
            found = evaluate(count, state.params, test, size)
            log.write({"epoch": epoch + 1, "training loss": float(mean.value)} | found)
            manager.save(epoch + 1, state)
    return log.read()


# ---- logging and drawing, by process 0 alone ------------------------------------------------


class Log:
    """A line of JSON for every epoch, in a file that process 0 writes."""

    def __init__(self, folder):
        self.file, self.here = folder / "log.jsonl", phalanx.process_index() == 0
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, entry):
        if self.here:
            print("   ".join(f"{name} {value:.4g}" for name, value in entry.items()), flush=True)
            with self.file.open("a") as file:
                print(json.dumps(entry), file=file)

    def read(self):
        entries = [json.loads(line) for line in self.file.read_text().splitlines()]
        return list({entry["epoch"]: entry for entry in entries}.values())  # if one was done again

    def progress(self, items, title):
        return track(items, title, transient=True, disable=not (self.here and sys.stdout.isatty()))


def draw(log, file):
    """Losses and accuracy of the epochs, in a file."""
    figure = Figure((9, 3.2), layout="constrained")
    for axes, names in zip(
        figure.subplots(1, 2), [("training loss", "test loss"), ("test accuracy",)], strict=True
    ):
        for name in names:
            axes.plot([e["epoch"] for e in log], [e[name] for e in log], label=name)
        axes.set_xlabel("epoch")
        axes.legend()
    figure.savefig(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("build/train"), help="for all files")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--size", type=int, default=96, help="of a batch")
    parser.add_argument("--lanes-at-once", type=int, help="images of a device at the same time")
    options = parser.parse_args()
    if "PHALANX_NUM_PROCESSES" in os.environ:  # which `phalanx launch` sets
        phalanx.distributed.initialize()
    log = train(**vars(options))
    if phalanx.process_index() == 0:
        draw(log, options.folder / "log.png")
        print(f"saved {options.folder / 'log.png'}")
