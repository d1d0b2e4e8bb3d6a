"""Pipelines: stages of equal layers, of which each works on another part of the batch.

A step whose weights are stacked, and which a loop takes layer by layer, can be divided between its
layers. With ``parts`` of a batch and ``stages``, each stage waits for the first part to arrive and
the last to leave: ``stages - 1`` turns of ``parts + stages - 1`` (Huang et al. 2019). Where each
stage has several groups of layers, ``rounds`` of them, it waits as many times less, and sends as
many times more (Narayanan et al. 2021). At most as many parts are there at a time as stages, where
backward passes follow at once, and somewhat more with several rounds.

The weights of a stage are whole, or divided over "tensor"; gradients are summed over "data".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from phalanx.insight.plans.layers import Layers
from phalanx.insight.plans.performance_model import Fitted, Load, fitted_to
from phalanx.insight.systems import Machine

__all__ = ["Pipeline", "PipelineTiming", "pipelined", "pipelines"]

_MOST = 16  # parts for each stage: more are not tried


class Pipeline(Struct, frozen=True):
    """How many copies there are of a pipeline, its stages, over how many chips each of them divides
    its products, the parts of the batch of a copy, and how many groups of layers a stage has."""

    data: int
    stages: int
    tensor: int
    parts: int
    rounds: int = 1

    @property
    def bubble(self) -> float:
        """The share of a step in which a stage waits.

        >>> Pipeline(1, 4, 1, 6).bubble
        0.3333333333333333
        """
        return (self.stages - 1) / (self.rounds * self.parts + self.stages - 1)

    @property
    def there(self) -> float:
        """Of how many parts the first stage holds values at most."""
        return min(self.parts, self.stages + (self.stages - 1) * (self.rounds > 1) / self.rounds)

    def __str__(self) -> str:
        rounds = f", {self.rounds} rounds" if self.rounds > 1 else ""
        return (
            f"data {self.data} x stages {self.stages} x tensor {self.tensor}, {self.parts} parts"
            + rounds
        )


def pipelines(layers: Layers, batch: int, chips: int, tensors: Sequence[int]) -> Iterator[Pipeline]:
    """The pipelines of so many ``chips`` that layers and batch allow, over ``tensors`` of each.

    >>> [*map(str, pipelines(Layers(2, 1.0), 4, 2, [1]))][:2]
    ['data 1 x stages 2 x tensor 1, 2 parts', 'data 1 x stages 2 x tensor 1, 4 parts']
    """
    for stages in _divisors(layers.count)[1:]:
        for tensor in tensors:
            data = chips // (stages * tensor)
            if data * stages * tensor != chips or batch % data:
                continue
            for parts in _divisors(batch // data):
                for rounds in _divisors(layers.count // stages):
                    in_turn = rounds == 1 or parts % stages == 0
                    if stages <= parts <= _MOST * stages and in_turn:
                        yield Pipeline(data, stages, tensor, parts, rounds)


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


# ---- how long -----------------------------------------------------------------------------------


class PipelineTiming(Struct, frozen=True):
    """A step as a pipeline: seconds of each part, and bytes on a chip of the first stage, where
    backward passes follow at once, and where all parts have gone forwards before, ``size_of_all``.
    """

    pipeline: Pipeline
    computing: float
    exchanging: float
    sending: float
    waiting: float
    size: float
    size_of_all: float
    fits: bool

    @property
    def seconds(self) -> float:
        """Of a step."""
        return self.computing + self.exchanging + self.sending + self.waiting


def pipelined(
    load: Load, chips: Machine, pipeline: Pipeline, fitted: Fitted | None = None
) -> PipelineTiming:
    """How long a step takes as a ``pipeline`` on ``chips``, and what it needs of the first stage.

    Chips of a product are next to each other, then copies, then stages.
    """
    fitted, chip = fitted or fitted_to(chips.system), chips.chip
    stages, tensor, parts = pipeline.stages, pipeline.tensor, pipeline.parts
    count, products = chips.chips, load.products
    own = stages * tensor  # of the state a chip has one part of so many

    def seconds(operation: str, size: float, among: int, stride: int, times: float) -> float:
        latency, time = chips.exchange(operation, size, among, stride)
        return latency * times + time

    arithmetic = load.at_peak(chips) / fitted.efficiency
    late = load.launching(chips, count / stages * parts) * parts / stages
    times = products.count * parts / stages
    reduced = products.reduced / pipeline.data / stages
    exchanged = fitted.exchanging * seconds("all-reduce", reduced, tensor, 1, times)
    handed = 2 * pipeline.rounds * load.layers.handed / pipeline.data / tensor  # and back
    messages = 2 * pipeline.rounds * parts
    sending = seconds("collective-permute", handed, 2, tensor * pipeline.data, messages)
    turns = arithmetic + load.moved / count / chip.bandwidth + late + exchanged
    gradients = products.gradients / own
    added = seconds("all-reduce", gradients, pipeline.data, tensor, 1)
    updating = load.updating / own / chip.bandwidth
    held, alive = (load.state + products.gradients) / own, load.alive / count
    size = held + alive * pipeline.there / parts
    return PipelineTiming(
        pipeline, turns - exchanged + updating, exchanged + added, sending,
        turns * (stages - 1) / (pipeline.rounds * parts), size, held + alive,
        size <= chip.memory,
    )  # fmt: skip
