"""Published training runs of dense decoders on A100s, in pipelines of stages.

From tables 1 and 2 of Narayanan et al. 2021 (https://arxiv.org/abs/2104.04473): TFLOP/s of each
GPU, as operations of all products, with all activations computed again. Products are divided over
the 8 GPUs of a machine, and sequences have 2,048 tokens. Parts of a batch have one sequence, as
table 2 says; table 1 does not. Nothing says that stages have several groups of layers: they have
one here. These runs are older than those to which plans for an A100 are fitted, and slower: the
share of the peak that products reach is fitted to every other row, and nothing else.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.plans.performance_model import Fitted, Load, fitted_to, load_of
from phalanx.insight.plans.pipelines import Pipeline, pipelined
from phalanx.insight.systems import machine
from tests.units.insight.plans.published import adam

VOCABULARY, LENGTH, TENSOR = 51_200, 2048, 8
FITTED = replace(fitted_to(machine("a100").system), efficiency=0.56)


@dataclass(frozen=True)
class Row:
    """A published row: billions of parameters, heads, the width, layers, stages, GPUs, sequences,
    TFLOP/s of each GPU."""

    parameters: float
    heads: int
    width: int
    layers: int
    stages: int
    gpus: int
    sequences: int
    published: float

    @property
    def pipeline(self) -> Pipeline:
        data = self.gpus // self.stages // TENSOR
        return Pipeline(data, self.stages, TENSOR, self.sequences // data)

    def planned(self, fitted: Fitted = FITTED) -> float:
        """TFLOP/s of each GPU, by the plan; operations as the paper counts them."""
        wide, length = self.width, LENGTH
        step = load(self.heads, wide, self.layers, self.sequences)
        seconds = pipelined(step, machine(f"a100:{self.gpus}"), self.pipeline, fitted).seconds
        share = 1 + length / 6 / wide + VOCABULARY / 16 / self.layers / wide
        operations = 96 * self.sequences * length * self.layers * wide**2 * share
        return operations / seconds / self.gpus / 1e12


ROWS = [
    Row(39.1, 64, 8192, 48, 2, 512, 1536, 138),
    Row(76.1, 80, 10_240, 60, 4, 1024, 1792, 140),
    Row(145.6, 96, 12_288, 80, 8, 1536, 2304, 148),
    Row(310.1, 128, 16_384, 96, 16, 1920, 2160, 155),
    Row(529.6, 128, 20_480, 105, 35, 2520, 2520, 163),
    Row(1008.0, 160, 25_600, 128, 64, 3072, 3072, 163),
    Row(174.6, 96, 12_288, 96, 12, 384, 1536, 153),
    Row(174.6, 96, 12_288, 96, 12, 768, 1536, 149),
    Row(174.6, 96, 12_288, 96, 12, 1536, 1536, 141),
    Row(529.6, 128, 20_480, 105, 35, 560, 2240, 171),
    Row(529.6, 128, 20_480, 105, 35, 1120, 2240, 167),
    Row(529.6, 128, 20_480, 105, 35, 2240, 2240, 159),
]


# ---- the program --------------------------------------------------------------------------------


def normalized(x: Any, scale: Any) -> Any:
    return phalanx.nn.standardize(x.astype(jnp.float32)).astype(jnp.bfloat16) * scale


def attended(q: Any, k: Any, v: Any) -> Any:
    """Attention that writes its scores to memory, as in 2021."""
    t = q.shape[1]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    seen = phalanx.nn.softmax(jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e4), -1)
    return jnp.einsum("bhqk,bkhd->bqhd", seen, v)


def block(heads: int, attended: Any, x: Any, layer: dict[str, Any]) -> Any:
    b, t, wide = x.shape
    w = phalanx.tree.map(lambda p: p.astype(jnp.bfloat16), layer)
    qkv = (normalized(x, w["norm_1"]) @ w["qkv"]).reshape(b, t, 3, heads, wide // heads)
    x = x + attended(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]).reshape(b, t, wide) @ w["out"]
    return x + phalanx.nn.gelu(normalized(x, w["norm_2"]) @ w["up"]) @ w["down"]


def step(heads: int, full: bool, params: Any, mean: Any, square: Any, tokens: Any) -> Any:
    """A training step; derivatives compute all of a layer again, or its attention alone."""
    if full:
        layer = phalanx.checkpoint(functools.partial(block, heads, attended))
    else:
        layer = functools.partial(block, heads, phalanx.checkpoint(attended))

    def once(x: Any, w: Any) -> tuple[Any, None]:
        return layer(x, w), None

    def loss(params: Any) -> Any:
        table = params["embedding"].astype(jnp.bfloat16)
        x, _ = lax.scan(once, table[tokens], params["layers"])
        logs = phalanx.nn.log_softmax((x @ table.T).astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(logs, tokens[..., None], -1))

    return adam(params, mean, square, phalanx.grad(loss)(params))


@functools.cache
def load(heads: int, width: int, layers: int, sequences: int, full: bool = True) -> Load:
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
    tokens = phalanx.ShapeDtypeStruct((sequences, LENGTH), jnp.int32)
    traced = phalanx.jit(step, static_argnums=(0, 1)).trace(
        heads, full, params, params, params, tokens
    )
    return load_of(traced)


# ---- the errors of the plan ----------------------------------------------------------------------


FITTED_TO, SHOWN = ROWS[::2], ROWS[1::2]


def errors(rows: list[Row], fitted: Fitted = FITTED) -> list[float]:
    """By what share the plan differs from what is published."""
    return [row.planned(fitted) / row.published - 1 for row in rows]


def table() -> str:
    """The rows as the documentation has them."""
    lines = [
        "| model, layers, GPUs | stages, parts | published | planned | error | |",
        "|---|---|---|---|---|---|",
    ]
    for row, error in zip(ROWS, errors(ROWS), strict=True):
        name = f"{row.parameters:,.0f}B, {row.layers}, {row.gpus:,} x A100"
        figures = f"{row.published:.0f} | {row.planned():.0f} | {100 * error:+.0f} %"
        used = "fitted to" if row in FITTED_TO else ""
        lines.append(f"| {name} | {row.stages}, {row.pipeline.parts} | {figures} | {used} |")
    return "\n".join(lines)
