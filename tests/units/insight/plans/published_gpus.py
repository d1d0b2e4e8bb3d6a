"""Published training runs of dense decoders on GPUs, whose state is parted over all of them.

From https://github.com/mosaicml/llm-foundry/blob/main/scripts/train/benchmarking/README.md: the
share of the peak, as 6 operations for each parameter and token and 12 for each element of
attention; tokens of a sequence, sequences of a microbatch on a GPU, and whether activations are
computed again. Widths and layers follow from the numbers of parameters, which stand there, too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.plans.performance_model import Fitted, Load, Parting, load_of, timing
from phalanx.insight.systems import Machine, machine
from tests.units.insight.plans.published import HEAD, adam

VOCABULARY = 50_368
MODELS = {  # width and layers
    "70B": (8192, 80), "30B": (7168, 48), "13B": (5120, 40), "7B": (4096, 32), "3B": (2560, 32),
    "1B": (2048, 24),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A published row: the model, tokens of a sequence, GPUs, sequences of each, whether
    activations are computed again, and the share of the peak, in per cent."""

    model: str
    length: int
    gpus: int
    sequences: int
    again: bool
    share: float
    on: str

    @property
    def chips(self) -> Machine:
        return machine(f"{self.on}:{self.gpus}")

    @property
    def published(self) -> float:
        """TFLOP/s of each GPU."""
        return self.share / 100 * self.chips.system.operations["bf16"] / 1e12

    def planned(self, fitted: Fitted | None = None) -> float:
        """The same, by the plan of a step with one microbatch."""
        width, layers = MODELS[self.model]
        tokens, size = self.sequences * self.length, self.sequences * self.gpus
        step = load(width, layers, self.length, size, self.again)
        seconds = timing(step, self.chips, Parting(1, self.gpus, 1), fitted).seconds
        parameters = 12 * layers * width**2 + (VOCABULARY + self.length) * width
        return tokens * (6 * parameters + 12 * layers * width * self.length) / seconds / 1e12


H100 = [
    Row(*row, "h100")
    for row in (
        ("70B", 2048, 64, 8, True, 42.57), ("70B", 2048, 32, 2, True, 36.15),
        ("30B", 4096, 8, 1, True, 35.86), ("30B", 2048, 32, 14, True, 43.92),
        ("30B", 2048, 16, 10, True, 43.07), ("30B", 2048, 8, 3, True, 38.11),
        ("13B", 4096, 8, 10, True, 41.6), ("13B", 2048, 64, 2, False, 39.86),
        ("13B", 2048, 32, 2, False, 39.95), ("13B", 2048, 16, 2, False, 39.58),
        ("13B", 2048, 8, 2, False, 39.79), ("13B", 1024, 8, 40, True, 44.27),
        ("7B", 4096, 8, 16, True, 40.42), ("7B", 2048, 8, 6, False, 46.44),
        ("7B", 1024, 8, 64, True, 42.83), ("3B", 4096, 8, 5, False, 42.31),
        ("3B", 2048, 64, 6, False, 40.8), ("3B", 2048, 32, 6, False, 41.7),
        ("3B", 2048, 16, 10, False, 43.73), ("3B", 1024, 8, 20, False, 46.2),
        ("1B", 2048, 64, 20, False, 40.85), ("1B", 2048, 32, 20, False, 41.52),
        ("1B", 2048, 16, 20, False, 42.36), ("1B", 2048, 8, 14, False, 41.82),
    )
]  # fmt: skip
A100 = [
    Row(*row, "a100")
    for row in (
        ("70B", 2048, 64, 8, True, 53.33), ("70B", 2048, 32, 2, True, 48.56),
        ("30B", 4096, 8, 1, True, 51.37), ("30B", 2048, 8, 3, True, 55.3),
        ("30B", 1024, 8, 6, True, 55.82), ("13B", 4096, 8, 10, True, 57.62),
        ("13B", 2048, 8, 2, False, 59.57), ("13B", 1024, 8, 40, True, 59.48),
        ("7B", 4096, 8, 16, True, 54.84), ("7B", 2048, 8, 6, False, 64.23),
        ("7B", 1024, 8, 64, True, 58.01), ("3B", 4096, 8, 5, False, 60.53),
        ("3B", 2048, 8, 10, False, 62.11), ("3B", 1024, 8, 20, False, 62.73),
        ("1B", 4096, 8, 7, False, 59.0), ("1B", 2048, 8, 14, False, 59.86),
        ("1B", 1024, 8, 18, False, 60.15),
    )
]  # fmt: skip


# ---- the program --------------------------------------------------------------------------------


def normalized(x: Any, scale: Any) -> Any:
    return phalanx.nn.standardize(x.astype(jnp.float32)).astype(jnp.bfloat16) * scale


def block(x: Any, layer: dict[str, Any]) -> Any:
    b, t, _ = x.shape
    w = phalanx.tree.map(lambda p: p.astype(jnp.bfloat16), layer)
    qkv = (normalized(x, w["norm_1"]) @ w["qkv"]).reshape(b, t, -1, HEAD)
    q, k, v = jnp.split(qkv, 3, axis=2)
    mixed = phalanx.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
    x = x + mixed.reshape(x.shape) @ w["out"]
    return x + phalanx.nn.gelu(normalized(x, w["norm_2"]) @ w["up"]) @ w["down"]


def step(params: Any, mean: Any, square: Any, tokens: Any, again: bool) -> Any:
    layer = phalanx.checkpoint(block) if again else block

    def loss(params: Any) -> Any:
        table = params["embedding"].astype(jnp.bfloat16)
        x, _ = lax.scan(lambda x, w: (layer(x, w), None), table[tokens], params["layers"])
        logs = phalanx.nn.log_softmax((x @ table.T).astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(logs, tokens[..., None], -1))

    return adam(params, mean, square, phalanx.grad(loss)(params))


@functools.cache
def load(width: int, layers: int, length: int, sequences: int, again: bool) -> Load:
    """What a step asks of a machine, traced at shapes alone."""

    def of(*shape: int) -> Any:
        return phalanx.ShapeDtypeStruct(shape, jnp.float32)

    params = {
        "embedding": of(VOCABULARY, width),
        "layers": {
            "norm_1": of(layers, width), "norm_2": of(layers, width),
            "qkv": of(layers, width, 3 * width), "out": of(layers, width, width),
            "up": of(layers, width, 4 * width), "down": of(layers, 4 * width, width),
        },
    }  # fmt: skip
    tokens = phalanx.ShapeDtypeStruct((sequences, length), jnp.int32)
    traced = phalanx.jit(step, static_argnums=4).trace(params, params, params, tokens, again)
    return load_of(traced)


# ---- the errors of the plan ----------------------------------------------------------------------


def errors(rows: list[Row], fitted: Fitted | None = None) -> list[float]:
    """By what share the plan differs from what is published."""
    return [row.planned(fitted) / row.published - 1 for row in rows]


def table() -> str:
    """The rows as the documentation has them."""
    lines = [
        "| model, tokens of a sequence, GPUs | published | planned | error | |",
        "|---|---|---|---|---|",
    ]
    for rows in (H100, A100):
        for i, (row, error) in enumerate(zip(rows, errors(rows), strict=True)):
            name = f"{row.model}, {row.length:,}, {row.gpus} x {row.on.upper()}"
            figures = f"{row.published:.0f} | {row.planned():.0f} | {100 * error:+.0f} %"
            lines.append(f"| {name} | {figures} | {'' if i % 2 else 'fitted to'} |")
    return "\n".join(lines)
