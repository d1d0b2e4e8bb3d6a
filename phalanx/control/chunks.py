"""How many lanes of a device run together: what the user asks for, or else what serves best.

All together serve small work best: one operation for all of them. Where together they keep more
alive than the caches hold, a few at a time are faster; and where they decide for themselves how
often a loop runs, or which branch, each alone does only what is its own. What is measured stands in
``COSTS``: ``python -m benchmarks.chunks`` shows for a table of programs what each number of lanes
at once costs, and what is chosen here.
"""

from __future__ import annotations

import math
from collections.abc import Set
from typing import Literal

from msgspec import Struct

from phalanx.control.framed import varying_inside, varying_values
from phalanx.core.layouts import Target
from phalanx.core.program import Atom, Equation, Frame, Program
from phalanx.core.runs import Marks
from phalanx.primitives.conv import conv_general_dilated
from phalanx.transforms.products import PRODUCTS
from phalanx.transforms.replication import Varying
from phalanx.transforms.storage import peak, size_in_bytes
from phalanx.transforms.work import work, work_of


class Reproducible(Struct, frozen=True):
    """Each lane runs by itself, as a program that knows nothing of the others."""


AtOnce = int | Literal["all"] | Reproducible | None
LANE = "<lane>"  # the axis of lanes, where its name does not matter


class Costs(Struct, frozen=True):
    """What was measured on a platform.

    Attributes:
        together: so many bytes of values may live at once; with more, lanes run a few at a time.
        question: the work of a branch from which on it pays that only lanes run it that take it.
        runs: how often a loop may be taken to run of which nobody knows it before.
        shared: the elements of a factor of products from which on it pays that lanes which all
            have it multiply by it together, even if that makes all wait for the slowest.
        wide: the elements of a lane from which on a loop is as fast with one lane as with many.
        convolves: whether convolutions cost the same in a loop.
        narrow: a lane whose values have no more elements than this does not fill vector registers.
        many: with more such lanes than this, all together are faster, unless they differ a lot.
    """

    together: int
    question: float
    runs: int
    shared: int
    wide: int
    convolves: bool
    narrow: int
    many: int


# Two cores with 32 MiB of cache. A transformer that keeps 75 MB alive runs 1.1 times as fast in
# chunks of 19 MB and 1.2 times in chunks of 38 MB, one of 280 MB 1.3 times in chunks of 35 MB; a
# network of 6 MB 0.4 to 0.8 times.
# Loops over 1,000 to a million numbers of a lane, without products, take 0.33 to 1.03 of the time
# one lane after another. Of 64 lanes of which the slowest takes 5 times as long as the mean, those
# that multiply by matrices of 64 x 256 take 0.6 of the time of all together if each is alone, those
# by 256 x 1024 0.9; were they equal it would be 2.6 and 4. Derivatives of convolutions take XLA
# about 8 times as long in a loop. Newton iterations of scalars, up to 100 in each of 10,000 lanes,
# take 2 to 10 times as long one by one.
COSTS = {
    "cpu": Costs(
        together=2**25, question=1e5, runs=100, shared=2**15, wide=2**10, convolves=False,
        narrow=2, many=500,
    )
}  # fmt: skip

# GPUs and TPUs compute lanes that run together faster, whatever they do, for as long as these fit:
# lanes one after another leave most of the chip idle. So a model of them is their memory, of which
# values that live for a while may take this share; the rest is for arguments and results. Nothing
# was measured there.
ALIVE = 0.5


class Chunks(Struct, frozen=True):
    """What the user ``asked`` for; None: what serves best on ``target``."""

    asked: AtOnce
    target: Target

    def __call__(self, segment: Program, own: Marks, size: int) -> int:
        """How many of ``size`` lanes run ``segment`` together; ``own`` marks inputs of a lane's."""
        at_once = self._wanted(segment, own, size)
        # what is left over is another program, which need not run after the loop
        return _most_dividing(size, at_once) if segment.effects else at_once

    @property
    def reproducible(self) -> bool:
        """Whether what a lane computes may not depend on which lanes a device has besides."""
        return isinstance(self.asked, Reproducible)

    def _wanted(self, segment: Program, own: Marks, size: int) -> int:
        if self.asked == "all":
            return size
        if isinstance(self.asked, Reproducible):
            return 1
        if self.asked is not None:
            return min(self.asked, size)
        best = size if segment.effects else self._serving_best(segment, own, size)
        return max(1, best >> self.target.halvings)

    def _serving_best(self, segment: Program, own: Marks, size: int) -> int:
        costs, memory = COSTS.get(self.target.platform), self.target.memory
        if costs is not None:
            return _best(segment, own, size, costs)
        return size if memory is None else _alive(segment, size, int(memory * ALIVE))


def _best(segment: Program, own: Marks, size: int, costs: Costs) -> int:
    if not costs.convolves and conv_general_dilated in segment.primitives:
        return size
    alone, together = _alone_and_together(segment, own, costs)
    if alone > together and (size <= costs.many or _widest(segment) > costs.narrow):
        return 1
    if _in_wide_loops(segment, costs):
        return 1
    return _alive(segment, size, costs.together)


def _alive(segment: Program, size: int, together: int) -> int:
    """How many of ``size`` lanes keep no more alive than ``together`` bytes."""
    taken = {a for e in segment.equations if e.prim.fold is not None for a in e.inputs}
    alive = peak(segment, taken.union(segment.outputs))  # what is kept is stored in any case
    if alive * size <= together:
        return size
    # what is taken in is read and written with each chunk, so that should not be more
    fewest = math.ceil(sum([size_in_bytes(a.type) for a in taken]) / alive)
    return _dividing(size, max(together // alive, fewest, 1))


def _dividing(size: int, at_once: int) -> int:
    """``at_once``, or somewhat less, if all chunks of ``size`` lanes are of one length then."""
    most = _most_dividing(size, at_once)
    return most if most > at_once // 2 else at_once


def _most_dividing(size: int, at_once: int) -> int:
    return next(n for n in range(at_once, 0, -1) if size % n == 0)


def _widest(program: Program) -> int:
    """How many elements a lane has in one value, at most."""
    return max([v.type.size for e in program.walk() for v in e.outputs], default=0)


def _in_wide_loops(program: Program, costs: Costs) -> bool:
    """Whether most of the work is in loops in which a lane is no slower alone."""
    loops = [e for e in program.equations if _is_wide_loop(e, costs)]
    return math.fsum(map(work_of, loops)) > work(program) / 2


def _is_wide_loop(e: Equation, costs: Costs) -> bool:
    """What is multiplied is faster with the lanes in one product, what is narrow in one vector."""
    frame = e.frame
    if frame is None or not frame.is_loop:
        return False
    return all(_widest(p) >= costs.wide and p.primitives.isdisjoint(PRODUCTS) for p in e.programs)


# ---- lanes that decide for themselves -----------------------------------------------------------


def _alone_and_together(program: Program, own: Marks, costs: Costs) -> tuple[float, float]:
    """The work in what lanes decide to run that is best done by each alone, and all other."""
    if all(p.decides is None for p in program.primitives):
        return 0.0, work(program)
    lanes = varying_values(program, LANE, own)
    alone, together = 0.0, 0.0
    for e in program.equations:
        frame = e.frame
        if frame is None:
            together += work_of(e)
            continue
        inside = varying_inside(e, frame, lanes)
        if _is_decided(e, lanes):
            mine, others = _decided(frame, inside, costs)
        else:
            pairs = [_alone_and_together(p, inside, costs) for p in frame.programs]
            runs = frame.runs.size if frame.condition is None else costs.runs
            mine, others = (runs * max(column) for column in zip(*pairs, strict=True))
        alone, together = alone + mine, together + others
    return alone, together


def _is_decided(e: Equation, lanes: Set[Atom]) -> bool:
    marks = [frozenset({LANE}) if a in lanes else Varying() for a in e.inputs]
    return e.prim.decides is not None and bool(e.prim.decides(marks, **e.params))


def _decided(frame: Frame, own: Marks, costs: Costs) -> tuple[float, float]:
    """The same for an operation in which each lane decides what it runs."""
    most = max(map(work, frame.programs))
    if frame.condition is None:
        return (most, 0.0) if most >= costs.question else (0.0, most)
    if max([_shared(p, own) for p in frame.programs]) >= costs.shared:
        return 0.0, costs.runs * most
    return costs.runs * most, 0.0


def _shared(program: Program, own: Marks) -> int:
    """The size of the largest of what all have by which lanes multiply what is their own."""
    lanes = varying_values(program, LANE, own)
    sizes = [0]
    for e in program.equations:
        frame = e.frame
        if e.prim in PRODUCTS and not lanes.isdisjoint(e.inputs):
            sizes += [a.type.size for a in e.inputs if a not in lanes]
        elif frame is not None:
            inside = varying_inside(e, frame, lanes)
            sizes += [_shared(p, inside) for p in frame.subprograms]
    return max(sizes)
