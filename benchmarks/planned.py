"""`python -m benchmarks.planned`: seconds of training steps, to be held against their plans.

A step is done by 1, 2, 4 and 8 processes on this computer, each with one device and its part of the
batch; they add up gradients over the loopback interface. The shortest of many short steps counts,
because other programs take time, too. What is printed is TOML; `phalanx measure` has the system.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import phalanx
import phalanx.numpy as jnp
from benchmarks.environment import environment
from phalanx import lax

ROOT = Path(__file__).parents[1]
COUNTS = (1, 2, 4, 8)
STEPS = 60
Model = tuple[dict[str, tuple[int, ...]], tuple[int, ...], Callable[[Any, Any], Any]]


def perceptron(w: dict[str, Any], x: Any) -> Any:
    for name in sorted(w):
        x = phalanx.nn.relu(x @ w[name])
    return jnp.mean(x * x)


def decoder(w: dict[str, Any], x: Any) -> Any:
    """Layers of attention and two products, one after the other."""

    def layer(x: Any, w: dict[str, Any]) -> tuple[Any, None]:
        heads = (x @ w["qkv"]).reshape(*x.shape[:2], 3, -1, 64)
        q, k, v = (heads[:, :, i] for i in range(3))
        x = (
            x
            + phalanx.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ w["out"]
        )
        return x + phalanx.nn.relu(x @ w["up"]) @ w["down"], None

    return jnp.mean(lax.scan(layer, x, w)[0] ** 2)


def square(width: int, layers: int) -> dict[str, tuple[int, ...]]:
    return {f"w{i}": (width, width) for i in range(layers)}


MODELS: dict[str, Model] = {  # the shapes of weights, that of a batch, and the loss
    "perceptron, 3 x 1,024": (square(1024, 3), (256, 1024), perceptron),
    "perceptron, 3 x 512": (square(512, 3), (1024, 512), perceptron),
    "decoder, 2 x 256": (
        {"qkv": (2, 256, 768), "out": (2, 256, 256), "up": (2, 256, 1024), "down": (2, 1024, 256)},
        (8, 64, 256), decoder,
    ),
}  # fmt: skip


def step(model: Model, mean: Callable[[Any], Any] = lambda grads: grads) -> Callable[..., Any]:
    """A step of gradient descent; ``mean`` is that of gradients over what takes part."""

    def train(w: dict[str, Any], x: Any) -> Any:
        grads = mean(phalanx.grad(model[2])(w, x))
        return phalanx.tree.map(lambda p, g: p - 1e-3 * g, w, grads)

    return train


def shapes(model: Model) -> tuple[Any, Any]:
    """Weights and the whole batch, as the plan wants them."""
    weights, batch, _ = model
    w = {name: phalanx.ShapeDtypeStruct(shape, jnp.float32) for name, shape in weights.items()}
    return w, phalanx.ShapeDtypeStruct(batch, jnp.float32)


# ---- measured -----------------------------------------------------------------------------------


def measure() -> dict[str, float]:
    """Seconds of a step of each model, in the process in which this is called."""
    phalanx.distributed.initialize()
    count = phalanx.process_count()
    found: dict[str, float] = {}
    for name, model in MODELS.items():
        lane = step(model, lambda grads: lax.pmean(grads, "batch"))
        train = phalanx.pmap(lane, "batch", in_axes=(None, 0), out_axes=None)
        random = np.random.default_rng(0)
        weights, (rows, *rest), _ = model
        w = {n: random.normal(0, 0.02, s).astype(np.float32) for n, s in weights.items()}
        x = random.normal(size=(1, rows // count, *rest)).astype(np.float32)
        x = phalanx.pmap(lambda x: x)(x)
        w = phalanx.block_until_ready(train(w, x))
        found[name] = min(_seconds(train, w, x) for _ in range(STEPS))
    return found


def _seconds(train: Callable[..., Any], *args: Any) -> float:
    start = time.perf_counter()
    phalanx.block_until_ready(train(*args))
    return time.perf_counter() - start


def measured_by(count: int) -> dict[str, float]:
    """The same, by the first of so many processes."""
    launch = ["-m", "phalanx", "launch", "-n", str(count), "--devices-per-process", "1"]
    printed = subprocess.check_output(
        [sys.executable, *launch, "-m", "benchmarks.planned", "--measure"], cwd=ROOT,
        env=environment(1, 1), text=True,
    )  # fmt: skip
    (line,) = [x for x in printed.splitlines() if x.startswith("[0] {")]
    return json.loads(line.removeprefix("[0] "))


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.planned")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure()))
        return
    found = {count: measured_by(count) for count in COUNTS}
    for name in MODELS:
        print(f'["{name}"]', *[f"{n} = {found[n][name]:.3g}" for n in COUNTS], "", sep="\n")


if __name__ == "__main__":
    main()
