"""`python -m benchmarks.memory [--steps N]`: memory of a deep gradient, and of training steps.

First the gradient of a transformer of 48 layers, small ones, scanned over, with and without
checkpoint: XLA's analysis says how many bytes it needs besides arguments and results. Then the
training steps of `benchmarks`: the most memory that a process had that compiles one and runs it 20
times, and how much more after N further steps. Phalanx and jax are measured, a process each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.case import CASES, DEVICES
from benchmarks.environment import environment

LAYERS, WIDTH, HEADS, LENGTH, BATCH = 48, 64, 4, 64, 4
LIBRARIES = ("phalanx", "jax")
STEPS = (
    "training step", "training step, 8 lanes on 1 device", "CNN training step",
    "mesh training step, jit",
)  # fmt: skip
ROOT = Path(__file__).parents[1]
POLICIES = {
    "checkpoint": None,
    "checkpoint, dots": "dots_saveable",
    "checkpoint, dots without batch": "dots_with_no_batch_dims_saveable",
}


def weights(np: Any) -> dict[str, Any]:
    """The parameters of all layers, stacked."""
    rng = np.random.default_rng(0)
    shapes = {
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    return {
        name: rng.normal(0, 1 / math.sqrt(shape[0]), (LAYERS, *shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def layer(api: Any) -> Callable:
    """A layer of a transformer without biases: `(x, weights) -> x`."""
    jnp = api.numpy

    def normalize(x: Any) -> Any:
        x = x - jnp.mean(x, axis=-1, keepdims=True)
        return x * api.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)

    def apply(x: Any, w: dict[str, Any]) -> Any:
        qkv = (normalize(x) @ w["qkv"]).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(WIDTH // HEADS)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", api.nn.softmax(scores, axis=-1), v)
        x = x + mixed.reshape(BATCH, LENGTH, WIDTH) @ w["out"]
        return x + api.nn.gelu(normalize(x) @ w["up"]) @ w["down"]

    return apply


def temporaries(np: Any, api: Any, apply: Callable) -> int:
    """Bytes that the gradient needs besides its arguments and results."""

    def loss(params: dict[str, Any], x: Any) -> Any:
        y, _ = api.lax.scan(lambda c, w: (apply(c, w), None), x, params)
        return api.numpy.sum(y * y)

    x = np.ones((BATCH, LENGTH, WIDTH), np.float32)
    compiled = api.jit(api.value_and_grad(loss)).lower(weights(np), x).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def measure(library: str) -> dict[str, int]:
    """All rows of one library."""
    api = importlib.import_module(library)
    for part in ("numpy", "lax", "nn"):
        importlib.import_module(f"{library}.{part}")
    np = importlib.import_module("numpy")
    bytes_of = {"without checkpoint": temporaries(np, api, layer(api))}
    for name, policy in POLICIES.items():
        granted = getattr(api.checkpoint_policies, policy) if policy else None
        apply = api.checkpoint(layer(api), policy=granted, prevent_cse=False)
        bytes_of[name] = temporaries(np, api, apply)
    return bytes_of


def held(what: str) -> float:
    """Megabytes of this process: `VmRSS` now, or `VmHWM` at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(what)]
    return int(line.split()[1]) / 1024


def resident(library: str, name: str, steps: int) -> list[float]:
    """Megabytes at most when the case ``name`` has run 20 times, and how many more later."""
    for module in ("cases", "training"):
        importlib.import_module(f"benchmarks.{module}")
    api, np = importlib.import_module(library), importlib.import_module("numpy")
    (case,) = [case for case in CASES if case.name == name]
    step = case.make(np, api)

    def run(times: int) -> None:
        for _ in range(times):
            api.block_until_ready(step())

    run(20)
    most, before = held("VmHWM"), held("VmRSS")
    run(steps)
    return [most, held("VmRSS") - before]


def in_a_process(library: str, *args: str) -> Any:
    """What ``library`` measures in a process of its own."""
    devices = DEVICES if args else 1
    command = [sys.executable, "-m", "benchmarks.memory", "--measure", library, *args]
    around = environment(devices, devices)
    return json.loads(subprocess.check_output(command, env=around, cwd=ROOT, text=True))


def deep() -> Table:
    """Megabytes and ratios, one row a way to differentiate."""
    bytes_of = {library: in_a_process(library) for library in LIBRARIES}
    result = Table(title=f"gradient of {LAYERS} layers: temporary memory")
    result.add_column("case")
    for title in (*LIBRARIES, "ratio"):
        result.add_column(title, justify="right")
    for name, ours in bytes_of["phalanx"].items():
        theirs = bytes_of["jax"][name]
        result.add_row(
            name, f"{ours / 1e6:.1f} MB", f"{theirs / 1e6:.1f} MB", f"{ours / theirs:.2f}"
        )
    return result


def training(steps: int) -> Table:
    """Megabytes and ratios, one row a training step."""
    result = Table(title="training steps: memory of the process")
    result.add_column("case")
    for title in (*LIBRARIES, "ratio", *(f"{x}: after {steps} more" for x in LIBRARIES)):
        result.add_column(title, justify="right")
    for name in STEPS:
        (ours, grown), (theirs, theirs_grown) = [
            in_a_process(library, name, str(steps)) for library in LIBRARIES
        ]
        shown = [f"{ours:.0f} MB", f"{theirs:.0f} MB", f"{ours / theirs:.2f}"]
        result.add_row(name, *shown, f"{grown:+.0f} MB", f"{theirs_grown:+.0f} MB")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--steps", type=int, default=200, metavar="N")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.measure:
        Console().print(deep(), training(options.steps))
        return
    library, *case = options.measure
    found = resident(library, case[0], int(case[1])) if case else measure(library)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
