"""Published training runs of dense decoders on TPUs, and the steps of these as programs.

From the README files and scripts below MaxText/configs/v5e and MaxText/configs/v5p of
https://github.com/AI-Hypercomputer/maxtext: TFLOP/s of each chip, as 6 operations for each
parameter and token and 12 for each element of attention; sequences on a chip, what is computed
again, and over how many chips the state and the products are parted in a slice. Sequences have
2,048 tokens.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.plans.performance_model import (
    Fitted,
    Load,
    Parting,
    fitted_to,
    load_of,
    timing,
)
from phalanx.insight.systems import Machine, machine

LENGTH, VOCABULARY, HEAD = 2048, 32_000, 128
FITTED = fitted_to(machine("v5e").system)


@dataclass(frozen=True)
class Model:
    """Its dimensions, and what is not kept for the backward pass: all, or the cheap part."""

    width: int
    heads: int
    hidden: int
    layers: int
    full: bool

    @property
    def parameters(self) -> int:
        inner = self.heads * HEAD
        layer = 4 * self.width * inner + 3 * self.width * self.hidden
        return self.layers * layer + self.width * VOCABULARY

    def operations(self, tokens: int) -> float:
        """What a step is said to take, whatever it computes twice."""
        return tokens * (6 * self.parameters + 12 * self.layers * self.heads * HEAD * LENGTH)


@dataclass(frozen=True)
class Row:
    """A published row: the model, the machine, sequences on a chip, how it is parted, TFLOP/s."""

    name: str
    model: Model
    on: str
    sequences: int
    tensor: int
    data: int  # copies in a slice
    published: float

    @property
    def chips(self) -> Machine:
        return machine(self.on)

    @property
    def parting(self) -> Parting:
        inside = self.chips.inside
        copies = self.data * self.chips.slices
        return Parting(copies, inside // self.data // self.tensor, self.tensor)

    def load(self) -> Load:
        return load(self.model, self.sequences * self.chips.chips)

    def rate(self, seconds: float) -> float:
        """TFLOP/s of each chip, where a step takes so many seconds."""
        tokens = self.sequences * LENGTH
        return self.model.operations(tokens) / seconds / 1e12


V5E = {
    "16B": (Model(4096, 64, 28_672, 32, True), 6, 1, (120, 117, 117, 115, 111, 108)),
    "32B": (Model(8192, 64, 28_672, 32, True), 4, 1, (132, 128, 126, 125, 123, 119)),
    "64B": (Model(8192, 64, 28_672, 64, True), 2, 1, (118, 112, 110, 108, 105, 99)),
    "128B": (Model(8192, 128, 57_344, 64, False), 1, 16, (110, 110, 108, 104, 100, 91)),
}
V5P = {
    "32B on 64": (Model(8192, 64, 28_672, 32, False), "4x4x4", 7, 4, 1, (328, 319)),
    "64B on 64": (Model(8192, 64, 28_672, 64, False), "4x4x4", 3, 4, 1, (323, 309)),
    "128B on 128": (Model(8192, 128, 57_344, 64, False), "4x4x8", 1, 8, 1, (315, 305)),
    "128B on 256": (Model(8192, 128, 57_344, 64, False), "4x8x8", 1, 8, 1, (316, 274)),
    "256B on 512": (Model(16_384, 128, 57_344, 64, False), "8x8x8", 1, 8, 1, (308, 289)),
    "512B on 512": (Model(16_384, 128, 57_344, 128, True), "8x8x8", 2, 8, 1, (294, 282)),
    "1024B on 1024": (Model(16_384, 256, 114_688, 128, True), "8x8x16", 2, 8, 1, (254, 237)),
    "1024B on 2048": (Model(16_384, 256, 114_688, 128, True), "8x16x16", 2, 8, 1, (297, 279)),
}
ROWS = [
    Row(f"{name}, v5e, {2**i} x 256", model, f"v5e:16x16:{2**i}", sequences, tensor, 1, float(rate))
    for name, (model, sequences, tensor, rates) in V5E.items()
    for i, rate in enumerate(rates)
] + [
    Row(f"{name}, v5p, {i + 1} x {shape}", model, f"v5p:{shape}:{i + 1}", sequences, tensor, data,
        float(rate))
    for name, (model, shape, sequences, tensor, data, rates) in V5P.items()
    for i, rate in enumerate(rates)
]  # fmt: skip


# ---- the program --------------------------------------------------------------------------------


def normalized(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def block(x: Any, layer: dict[str, Any]) -> Any:
    """A layer; weights are cast where they are used."""
    b, t, _ = x.shape
    as_used = phalanx.tree.map(lambda w: w.astype(jnp.bfloat16), layer)
    h = normalized(x, as_used["norm_1"])
    q, k, v = jnp.split((h @ as_used["qkv"]).reshape(b, t, -1, HEAD), 3, axis=2)
    mixed = phalanx.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
    x = x + mixed.reshape(b, t, -1) @ as_used["out"]
    h = normalized(x, as_used["norm_2"])
    gate, up = jnp.split(h @ as_used["in"], 2, axis=-1)
    return x + (phalanx.nn.silu(gate) * up) @ as_used["down"]


def loss(params: dict[str, Any], tokens: Any, full: bool) -> Any:
    policy = None if full else phalanx.checkpoint_policies.dots_with_no_batch_dims_saveable
    layer = phalanx.checkpoint(block, policy=policy)
    table = params["embedding"].astype(jnp.bfloat16)
    x, _ = lax.scan(lambda x, w: (layer(x, w), None), table[tokens], params["layers"])
    scores = normalized(x, jnp.bfloat16(1)) @ table.T
    logs = phalanx.nn.log_softmax(scores.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(logs, tokens[..., None], -1))


def step(params: Any, mean: Any, square: Any, tokens: Any, full: bool) -> Any:
    """A step of Adam."""
    return adam(params, mean, square, phalanx.grad(loss)(params, tokens, full))


def adam(params: Any, mean: Any, square: Any, grads: Any) -> Any:
    mean = phalanx.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = phalanx.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    params = phalanx.tree.map(
        lambda p, m, s: p - 1e-4 * m / (jnp.sqrt(s) + 1e-8), params, mean, square
    )
    return params, mean, square


@functools.cache
def load(model: Model, sequences: int) -> Load:
    """What a step asks of a machine, traced at shapes alone."""
    inner, layers = model.heads * HEAD, model.layers

    def of(*shape: int) -> Any:
        return phalanx.ShapeDtypeStruct(shape, jnp.float32)

    params = {
        "embedding": of(VOCABULARY, model.width),
        "layers": {
            "norm_1": of(layers, model.width), "norm_2": of(layers, model.width),
            "qkv": of(layers, model.width, 3 * inner), "out": of(layers, inner, model.width),
            "in": of(layers, model.width, 2 * model.hidden),
            "down": of(layers, model.hidden, model.width),
        },
    }  # fmt: skip
    tokens = phalanx.ShapeDtypeStruct((sequences, LENGTH), jnp.int32)
    traced = phalanx.jit(step, static_argnums=4).trace(params, params, params, tokens, model.full)
    return load_of(traced)


# ---- the errors of the plan ----------------------------------------------------------------------

FITTED_TO, SHOWN = ROWS[::2], ROWS[1::2]


def planned(row: Row, fitted: Fitted = FITTED) -> float:
    """TFLOP/s of each chip, by the plan."""
    return row.rate(timing(row.load(), row.chips, row.parting, fitted).seconds)


def errors(rows: list[Row], fitted: Fitted = FITTED) -> list[float]:
    """By what share the plan differs from what is published."""
    return [planned(row, fitted) / row.published - 1 for row in rows]


def table() -> str:
    """The rows as the documentation has them."""
    lines = ["| model, chips, slices | published | planned | error | |", "|---|---|---|---|---|"]
    for row, error in zip(ROWS, errors(ROWS), strict=True):
        used = "fitted to" if row in FITTED_TO else ""
        figures = f"{row.published:.0f} | {planned(row):.0f} | {100 * error:+.0f} %"
        lines.append(f"| {row.name} | {figures} | {used} |")
    return "\n".join(lines)
