"""`python -m benchmarks.memory`: what the gradient of a deep transformer needs, with checkpoint.

A transformer of 48 layers, small ones, scanned over. XLA's analysis of the compiled gradient says
how many bytes it needs besides arguments and results; Phalanx and jax are measured, a process each.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

LAYERS, WIDTH, HEADS, LENGTH, BATCH = 48, 64, 4, 64, 4
LIBRARIES = ("phalanx", "jax")
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


def in_a_process(library: str) -> dict[str, int]:
    """The same in a process of its own, on one CPU device."""
    environment = os.environ | {"PHALANX_PLATFORMS": "cpu", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "benchmarks.memory", library]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def table(bytes_of: dict[str, dict[str, int]]) -> Table:
    """Megabytes and ratios, one row a way to differentiate."""
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


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(measure(sys.argv[1])))
    else:
        Console().print(table({library: in_a_process(library) for library in LIBRARIES}))
