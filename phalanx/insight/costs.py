"""What a program computes and moves: of each equation how often it runs, operations and bytes.

Numbers are for all devices together. A compiler fuses elementwise operations with what uses them;
so bytes are those of values that are stored (``transforms/storage.py``), read once for all that is
fused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.source import Location
from phalanx.core.program import Atom, Equation, Frame, Literal, Program, plain
from phalanx.core.runs import Loop
from phalanx.insight.systems import Machine
from phalanx.transforms.derive import keep
from phalanx.transforms.storage import size_in_bytes, stored
from phalanx.transforms.work import operations

__all__ = ["LineCost", "Step", "by_line", "dearest", "loops_in", "runs", "steps"]

_F32 = np.dtype(np.float32)


class Step(Struct, frozen=True):
    """An equation of a program, how ``often`` it runs, and the bytes that it moves each time."""

    equation: Equation
    often: float
    moved: float

    @property
    def operations(self) -> float:
        """How many of arithmetic, in all."""
        return self.often * operations(self.equation)

    @property
    def dtype(self) -> np.dtype:
        """That of its numbers."""
        types = [a.type.dtype for a in (*self.equation.inputs, *self.equation.outputs)]
        return next((t for t in types if dtypes.is_inexact(t)), _F32)

    def seconds(self, machine: Machine, devices: int) -> float:
        """How long it takes ``devices`` of ``machine``, by its roofline."""
        share = self.often / max(devices, 1)
        return machine.roofline(self.operations / max(devices, 1), share * self.moved, self.dtype)


def steps(program: Program, often: float = 1.0) -> Iterator[Step]:
    """The equations that a program runs, those of sub-programs included.

    What is in a loop runs as often as the loop does; once, where nobody knows how often. Of
    branches, it is the one that computes most.
    """
    moved = _moved(program)
    for e, size in zip(program.equations, moved, strict=True):
        frame = e.frame
        if frame is None:
            yield Step(e, often, size)
        else:
            yield from steps(dearest(frame), often * runs(frame))


def dearest(frame: Frame) -> Program:
    """Of the programs of a frame the one that computes most."""
    first, *others = frame.programs
    return max(frame.programs, key=_operations) if others else first


def _operations(program: Program) -> float:
    return keep(program, "operations", lambda: sum([s.operations for s in steps(program)]))


def runs(frame: Frame) -> int:
    """How often its program runs; once, where nobody knows."""
    is_unknown = isinstance(frame.runs, Loop) and frame.runs.length is None
    return 1 if is_unknown else frame.runs.size


def loops_in(program: Program) -> list[Loop]:
    """Its loops; of some nobody knows before how often they run."""
    frames = [e.frame for e in program.walk() if e.prim.subprograms is not None]
    return [f.runs for f in frames if f is not None and isinstance(f.runs, Loop)]


def _moved(program: Program) -> list[float]:
    """The bytes that each equation reads and writes.

    An operation whose result is not stored is made where that is used first: with what it is
    made with, it reads a value once.
    """
    equations, kept = program.equations, stored(program)
    kept = kept.union(program.inputs)
    made_in: dict[Atom, int] = {}
    read: set[tuple[int, Atom]] = set()
    moved = [0.0] * len(equations)
    for i in reversed(range(len(equations))):
        e = equations[i]
        alone = any([v in kept for v in e.outputs]) or not e.prim.elements.fused
        place = i if alone else min([made_in.get(v, i) for v in e.outputs], default=i)
        for a in dict.fromkeys(e.inputs):
            made_in.setdefault(a, place)
            is_stored = a in kept or isinstance(a, Literal)
            if is_stored and (place, a) not in read:
                read.add((place, a))
                moved[i] += size_in_bytes(plain(a.type))
        moved[i] += sum([size_in_bytes(v.type) for v in e.outputs if v in kept])
    return moved


# ---- by the user's line -------------------------------------------------------------------------


class LineCost(Struct):
    """What a line of the user's costs, on all devices; ``seconds`` on each of them."""

    location: Location | None
    operations: float = 0.0
    moved: float = 0.0
    seconds: float = 0.0
    computing: float = 0.0  # of the seconds, those in which arithmetic takes longest

    @property
    def bound(self) -> str:
        """What it waits for: arithmetic, or memory."""
        return "compute" if self.computing > self.seconds / 2 else "memory"


def by_line(all_steps: Iterable[Step], machine: Machine, devices: int) -> list[LineCost]:
    """The costs of lines, the dearest first."""
    found: dict[tuple[str, int], LineCost] = {}
    for step in all_steps:
        place = step.equation.location
        key = (place.file, place.line) if place is not None else ("", 0)
        cost = found.setdefault(key, LineCost(place))
        seconds = step.seconds(machine, devices)
        cost.operations += step.operations
        cost.moved += step.often * step.moved
        cost.seconds += seconds
        if step.operations / machine.chip.peak(step.dtype) >= seconds * devices * 0.999:
            cost.computing += seconds
    return sorted(found.values(), key=lambda c: -c.seconds)
