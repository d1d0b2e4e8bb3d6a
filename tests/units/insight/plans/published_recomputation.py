"""Published training runs of dense decoders on A100s, in interleaved pipelines.

From tables 3 and 5 of Korthikanti et al. 2022 (https://arxiv.org/abs/2205.05198), and section 6.3
for the one with copies: seconds of an iteration, where all of a layer is computed again, or, with
sequence parallelism, attention alone. Products are divided over the 8 GPUs of a machine, sequences
have 2,048 tokens, and parts of a batch one sequence, but for the smallest model, which is in no
pipeline. The models with three rounds are named in section 6. Nothing was fitted to these runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from phalanx.insight.plans.performance_model import Parting, Timing, timing
from phalanx.insight.plans.pipelines import Pipeline, PipelineTiming, pipelined
from phalanx.insight.systems import machine
from tests.units.insight.plans.published_pipelines import FITTED, LENGTH, TENSOR, VOCABULARY, load


@dataclass(frozen=True)
class Model:
    """Its name, heads, width, layers, stages and rounds."""

    name: str
    heads: int
    width: int
    layers: int
    stages: int
    rounds: int

    def operations(self, sequences: int) -> float:
        """What a step is said to take, by appendix A, whatever it computes twice."""
        wide, tokens = self.width, sequences * LENGTH
        share = 1 + LENGTH / 6 / wide + VOCABULARY / 12 / wide / self.layers
        return 72 * tokens * self.layers * wide**2 * share


@dataclass(frozen=True)
class Row:
    """A published row: the model, GPUs, sequences, whether all is computed again, seconds, and the
    share of the peak, in per cent, if that is told."""

    model: Model
    gpus: int
    sequences: int
    full: bool
    published: float
    share: float | None = None

    def planned(self) -> Timing | PipelineTiming:
        """What the plan says of it."""
        m, chips = self.model, machine(f"a100:{self.gpus}")
        step = load(m.heads, m.width, m.layers, self.sequences, self.full)
        if m.stages == 1:
            return timing(step, chips, Parting(1, 1, TENSOR), FITTED)
        data = self.gpus // m.stages // TENSOR
        pipeline = Pipeline(data, m.stages, TENSOR, self.sequences // data, m.rounds)
        return pipelined(step, chips, pipeline, FITTED)


B22 = Model("22B", 64, 6144, 48, 1, 1)
B175 = Model("175B", 96, 12_288, 96, 8, 3)
B530 = Model("530B", 128, 20_480, 105, 35, 3)
B1000 = Model("1T", 160, 25_600, 128, 64, 1)
ROWS = [
    Row(B22, 8, 4, True, 1.42), Row(B22, 8, 4, False, 1.10, 41.5),
    Row(B175, 64, 64, True, 18.13), Row(B175, 64, 64, False, 13.75, 51.4),
    Row(B530, 280, 280, True, 49.05), Row(B530, 280, 280, False, 37.83, 56.0),
    Row(B530, 2240, 2240, False, 39.15, 54.2),
    Row(B1000, 512, 512, True, 94.42), Row(B1000, 512, 512, False, 71.49, 56.3),
]  # fmt: skip


def errors(rows: list[Row]) -> list[float]:
    """By what share the time of the plan differs from what is published."""
    return [row.planned().seconds / row.published - 1 for row in rows]


def table() -> str:
    """The rows as the documentation has them."""
    lines = [
        "| model, GPUs | stages, rounds | computed again | published | planned | error |",
        "|---|---|---|---|---|---|",
    ]
    for row, error in zip(ROWS, errors(ROWS), strict=True):
        m, again = row.model, "layers" if row.full else "attention"
        figures = f"{row.published:.2f} s | {row.planned().seconds:.2f} s | {100 * error:+.0f} %"
        lines.append(
            f"| {m.name}, {row.gpus:,} x A100 | {m.stages}, {m.rounds} | {again} | {figures} |"
        )
    return "\n".join(lines)
