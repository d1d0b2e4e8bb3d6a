"""A model of training steps: seconds and bytes of a step on a machine that is not here.

A step is parted over a mesh: copies of the model ("data"), parts of the state that are gathered
where they are used ("fsdp"), parts of sequences ("sequence"), whose chips are copies of the model,
too, and parts of each product ("tensor", as Shoeybi et al. 2019 have it). Its time is that of

- its products, at a share of the peak;
- all else that it reads and writes, at the bandwidth of memory;
- what operations take longer than that, as even a small one takes its time;
- the sums of parts of products, and what products read of whole sequences, over the links that
  they take;
- what of gathering the state, and of adding up gradients, does not hide behind products;
- waiting for the slowest slice.

Operations and bytes follow from the program, the figures of chips from their makers. What these do
not say is fitted to published training runs; the documentation shows the errors.
"""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from phalanx.api.stages import Traced
from phalanx.base.errors import ArgumentError
from phalanx.base.extended import is_key
from phalanx.core.program import Atom, Equation, Program
from phalanx.core.runs import Lanes
from phalanx.insight.costs import steps
from phalanx.insight.memory_timeline import course
from phalanx.insight.plans.batch import LANES_ALONE, BatchRows, batch_of
from phalanx.insight.plans.dimensions import ATTENTION
from phalanx.insight.plans.layers import NO_LAYERS, Layers, layers_of
from phalanx.insight.plans.matrix_products import Products, products_in
from phalanx.insight.plans.sequences import NO_SEQUENCES, Sequences, sequences_of
from phalanx.insight.state import Pairs, arguments_of, state_of
from phalanx.insight.systems import Machine, System
from phalanx.insight.traced import whole
from phalanx.primitives.contract import dot_general
from phalanx.primitives.conv import conv_general_dilated
from phalanx.transforms.dce import dce
from phalanx.transforms.storage import size_in_bytes

__all__ = ["Fitted", "Load", "Parting", "Timing", "fitted_to", "load_of", "timed", "timing"]

_PRODUCTS = frozenset((dot_general, conv_general_dilated, *ATTENTION))


class Fitted(Struct, frozen=True):
    """What published runs say that figures of chips do not.

    Attributes:
        efficiency: the share of the peak that large products reach.
        exchanging: how long the sums of parts of products hold a chip up, for each second that
            their bytes take at the figures of its links; and what they read of whole sequences.
        hidden: of exchanges that have products to hide behind, the share that does.
        straggling: by what a step gets longer with each doubling of the slices, as all wait for
            the slowest.
    """

    efficiency: float
    exchanging: float
    hidden: float
    straggling: float


# Fitted, as what the table of systems says of each, to every other of published rows of training;
# the tests that do so show the errors of all.
EXCHANGING, STRAGGLING = 1.45, 0.025


def fitted_to(system: System) -> Fitted:
    """What is known of machines of a system besides its figures."""
    return Fitted(system.reached, EXCHANGING, system.hidden, STRAGGLING)


class Parting(Struct, frozen=True):
    """Over how many chips the copies, the parts of the state, the parts of products and those of
    sequences lie."""

    data: int
    fsdp: int
    tensor: int
    sequence: int = 1

    @property
    def chips(self) -> int:
        """All of them."""
        return self.data * self.fsdp * self.sequence * self.tensor

    def __str__(self) -> str:
        sequence = f" x sequence {self.sequence}" if self.sequence > 1 else ""
        return f"data {self.data} x fsdp {self.fsdp}{sequence} x tensor {self.tensor}"


class Load(Struct, frozen=True):
    """What a step asks of a machine, in all.

    Attributes:
        products: what its products take and exchange.
        operations: of products, by the dtype that they are in.
        moved: bytes that all else reads and writes.
        updating: of these, not counted there, those of making the new state, which each copy does.
        small: how often operations run, by the dtype of a product, or None, and the operations of
            that, or the bytes that another one moves.
        batch: over how many chips the batch can be parted.
        state: bytes of the state.
        alive: the most bytes of values, beside the state, that are there at once.
        lanes: how many run it, of a ``pmap``; else 1.
        parted: what of the arguments of each of them is taken for the batch.
        layers: the equal layers that a loop takes one after the other.
        sequences: those of the batch.
    """

    products: Products
    operations: dict[np.dtype, float]
    moved: float
    updating: float
    small: dict[tuple[np.dtype | None, float], float]
    batch: int
    state: float
    alive: float
    lanes: int
    parted: BatchRows
    layers: Layers
    sequences: Sequences

    def at_peak(self, chips: Machine) -> float:
        """The seconds of its products on so many ``chips``, at their peak."""
        seconds = [n / chips.chip.peak(dtype) for dtype, n in self.operations.items()]
        return sum(seconds) / chips.chips

    def launching(self, chips: Machine, among: float = 0) -> float:
        """What operations on ``chips``, divided ``among`` all or so many, take longer than their
        arithmetic and their bytes do, as each takes a least time."""
        chip, least = chips.chip, chips.system.launch
        late = 0.0
        for (dtype, size), often in self.small.items():
            rate = chip.bandwidth if dtype is None else chip.peak(dtype)
            late += often * max(0.0, least - size / rate / (among or chips.chips))
        return late


class Timing(Struct, frozen=True):
    """A step on a machine: seconds of each part, and bytes on a chip."""

    parting: Parting
    arithmetic: float
    memory: float
    launching: float
    tensor: float
    sequence: float
    fsdp: float
    data: float
    waiting: float
    size: float
    fits: bool

    @property
    def exchanging(self) -> float:
        """The seconds of all exchanges that do not hide."""
        return self.tensor + self.sequence + self.fsdp + self.data

    @property
    def seconds(self) -> float:
        """Of a step."""
        return self.arithmetic + self.memory + self.launching + self.exchanging + self.waiting


def load_of(traced: Traced, rows: int = 0) -> Load:
    """What a step asks of a machine.

    Of a ``pmap`` it is what all its lanes ask. They are parts of a batch: what they add up over
    their axis are gradients, as copies of the model do. The batch has ``rows``, or, where that is
    0, as many as most of its arrays begin with; as many as there are lanes, if a lane has one row.

    Raises:
        ValueError: it gives nothing that it takes, and so it is no training step; nothing that it
            takes has that many rows.
    """
    program, lanes, of_one_example = _lane(traced.program)
    program = dce(program)
    taken = {i for i, _ in state_of(traced._traced, program)}
    state = [i in taken for i in range(len(program.inputs))]
    if not taken:
        raise ArgumentError(
            f"plan: {program.name} returns no array of the type of one that it takes; a training "
            "step takes its parameters and optimizer state, and returns the new ones"
        )
    operations: dict[np.dtype, float] = {}
    moved = updating = 0.0
    small: dict[tuple[np.dtype | None, float], float] = {}
    updates = _updates(program, state_of(traced._traced, program))
    freed = {v for v, s in zip(program.inputs, state, strict=True) if s}
    for step in steps(program, freed=freed):
        dtype, size = None, step.moved
        if step.equation.prim in _PRODUCTS:
            dtype, size = step.equation.inputs[0].type.dtype, step.operations / step.often
            operations[dtype] = operations.get(dtype, 0.0) + lanes * step.operations
        elif step.equation in updates:
            updating += step.moved
        else:
            moved += lanes * step.often * step.moved
        if step.starts:
            key = dtype, lanes * size
            small[key] = small.get(key, 0.0) + step.often
    sizes = [float(size_in_bytes(t)) for t in program.input_types]
    names = [""] * len(sizes)
    peak = course(program, names, sizes, state, 1).peak
    products = products_in(program, state)
    names = whole(traced).names.all()
    _check_rows(rows, lanes, of_one_example)
    arguments = arguments_of(traced._traced, len(sizes))
    batch = LANES_ALONE
    if not of_one_example:
        batch = batch_of(program, taken, names, products.sizes, arguments, rows // lanes)
    if batch.frozen:
        state = [s or i in batch.frozen for i, s in enumerate(state)]
        products = products_in(program, state)
    products.reduced *= lanes
    held = sum([n for n, s in zip(sizes, state, strict=True) if s])
    layers, sequences = NO_LAYERS, NO_SEQUENCES
    if lanes == 1:
        layers = layers_of(program, state)
        sequences = sequences_of(program, state, batch.along, names, products.sizes)
    return Load(
        products, operations, moved, updating, small, lanes * batch.rows, held,
        lanes * max(0.0, peak - held), lanes, batch, layers, sequences,
    )  # fmt: skip


def _check_rows(rows: int, lanes: int, of_one_example: bool) -> None:
    """Raise ArgumentError if the lanes of a ``pmap`` cannot share the rows that are asked for."""
    if of_one_example and rows not in (0, lanes):
        raise ArgumentError(f"plan: batch={rows:,}: each of {lanes:,} lanes has one example")
    if rows % lanes:
        raise ArgumentError(f"plan: batch={rows:,}: {lanes} lanes cannot share so many rows")


def _updates(program: Program, state: Pairs) -> set[Equation]:
    """The equations that make the new state, one element of each array by one of the others."""
    makers: dict[Atom, Equation] = {v: e for e in program.equations for v in e.outputs}
    found: set[Equation] = set()
    waiting = [program.outputs[o] for _, o in state]
    while waiting:
        e = makers.get(waiting.pop())
        if e is not None and e not in found and e.prim.elements.fused:
            found.add(e)
            waiting += e.inputs
    return found


def _lane(program: Program) -> tuple[Program, int, bool]:
    """What one lane runs, how many there are, if the step is a ``pmap``, and whether a lane has one
    example: a number of its own, such as a label."""
    frame = None if program.only is None else program.only.frame
    if frame is None or not isinstance(frame.runs, Lanes):
        return program, 1, False
    if any([r.axes - r.sliced for r in (*frame.ins, *frame.outs)]):
        return program, 1, False
    (inner,) = frame.programs
    pairs = zip(frame.ins, inner.input_types, strict=True)
    numbers = [r for r, t in pairs if not t.ndim and not is_key(t.dtype)]
    return inner, frame.runs.size, any([any(r.layout) for r in numbers])


def timing(load: Load, chips: Machine, parting: Parting, fitted: Fitted | None = None) -> Timing:
    """How long a step takes on ``chips``, parted in this way, and what it needs of each."""
    count, products = parting.chips, load.products
    moved = load.moved / count + load.updating / parting.fsdp / parting.tensor
    groups = parting.data * parting.fsdp

    def seconds(operation: str, size: float, among: int, stride: int, times: float) -> float:
        latency, time = chips.exchange(operation, size, among, stride)
        return latency * times + time

    # chips of a product are next to each other, then those of a sequence
    t, s, times, whole = parting.tensor, parting.sequence, products.count, load.sequences
    tensor = seconds("all-reduce", products.reduced / groups / s, t, 1, times)
    sequence = seconds("all-gather", whole.exchanged / groups / t, s, t, whole.count)
    fsdp = seconds("all-gather", products.gathered / t, parting.fsdp, t * s, times)
    part = products.gradients / t / parting.fsdp
    fsdp += seconds("reduce-scatter", part, parting.fsdp, t * s, times / 3)
    data = seconds("all-reduce", part, parting.data, t * s * parting.fsdp, 1)
    data += seconds("all-reduce", part, s, t, 1)
    size = (load.state + products.gradients) / parting.tensor / parting.fsdp
    size += load.alive / count + 2 * products.largest / parting.tensor
    if s > 1:
        size += whole.largest / groups / t
    exchanges = {"tensor": tensor, "sequence": sequence, "fsdp": fsdp, "data": data}
    memory = moved / chips.chip.bandwidth
    launching = load.launching(chips)
    return timed(chips, parting, load.at_peak(chips), memory, launching, exchanges, size, fitted)


def timed(
    chips: Machine, parting: Parting, at_peak: float, memory: float, launching: float,
    exchanges: Mapping[str, float], size: float, fitted: Fitted | None = None,
) -> Timing:  # fmt: skip
    """A step of which parts take so long by the figures of ``chips``: products at their peak, all
    else by the bandwidth of memory, what small operations take longer, and exchanges over each
    axis, of which some hide."""
    fitted = fitted or fitted_to(chips.system)
    arithmetic = at_peak / fitted.efficiency
    tensor, sequence = [fitted.exchanging * exchanges[axis] for axis in ("tensor", "sequence")]
    fsdp, data = exchanges["fsdp"], exchanges["data"]
    fsdp -= fitted.hidden * min(fsdp, 2 / 3 * arithmetic)
    data -= fitted.hidden * min(data, 1 / 3 * arithmetic)
    busy = arithmetic + memory + launching + tensor + sequence + fsdp + data
    straggling = fitted.straggling * math.log2(chips.slices) if chips.system.torus else 0.0
    return Timing(
        parting, arithmetic, memory, launching, tensor, sequence, fsdp, data, busy * straggling,
        size, size <= chips.chip.memory,
    )  # fmt: skip
