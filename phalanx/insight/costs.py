"""What a program computes and moves: of each equation how often it runs, operations and bytes.

Numbers are for all devices together. A compiler fuses elementwise operations with what uses them;
so bytes are those of values that are stored (``transforms/storage.py``), read once for all that is
fused, and of these the elements that it needs. What is written into an array that nobody else needs
is written in its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Set

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.source import Location
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Frame, Literal, Program, Var
from phalanx.core.roles import CARRY
from phalanx.core.runs import Loop
from phalanx.insight.systems import Machine
from phalanx.transforms.dce import dce
from phalanx.transforms.storage import last_uses, size_in_bytes, stored
from phalanx.transforms.work import operations

__all__ = ["LineCost", "Step", "by_line", "dearest", "loops_in", "runs", "steps"]

_F32 = np.dtype(np.float32)


class Step(Struct, frozen=True):
    """An equation of a program, how ``often`` it runs, the bytes that it moves each time, and
    whether it is an operation of the device: others are parts of such."""

    equation: Equation
    often: float
    moved: float
    starts: bool = False

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


def steps(program: Program, often: float = 1.0, freed: Set[Atom] = frozenset()) -> Iterator[Step]:
    """The equations that a program runs, those of sub-programs included.

    What is in a loop runs as often as the loop does; once, where nobody knows how often. Of
    branches, it is the one that computes most. Inputs in ``freed`` may be written over.
    """
    moved, in_memory = _moved(program, freed), stored(program)
    for e, size in zip(program.equations, moved, strict=True):
        frame = e.frame
        if frame is None:
            yield Step(e, often, size, _starts(e, in_memory))
        else:
            inner, times = dearest(frame), often * runs(frame)
            passed = _passed(frame, inner)
            if passed:
                yield Step(e, times, 2 * passed)
            yield from steps(inner, times, set(_carried(frame, inner)))


def _starts(e: Equation, in_memory: Set[Atom]) -> bool:
    """Whether a compiler makes an operation of its own of ``e``: it fuses what moves elements, too,
    with what they are for."""
    elements = e.prim.elements
    if elements.copied:
        return False
    return not elements.fused or any([v in in_memory for v in e.outputs])


def _carried(frame: Frame, inner: Program) -> list[Var]:
    """The inputs of ``inner`` that one run has from the one before."""
    return [v for v, r in zip(inner.inputs, frame.body_roles, strict=True) if r is CARRY]


def _passed(frame: Frame, inner: Program) -> float:
    """The bytes of what ``inner`` gives as it has them already, which are copied to its result."""
    if not frame.is_loop:
        return 0.0
    there: set[Atom] = {*inner.inputs}
    size = 0.0
    for v, role in zip(inner.outputs, frame.outs, strict=True):
        if v in there and role is not CARRY:
            size += size_in_bytes(v.type)
        there.add(v)
    return size


def dearest(frame: Frame) -> Program:
    """The program of a frame that computes most, with what its results need."""
    first, *others = frame.programs
    return dce(max(frame.programs, key=_operations) if others else first)


def _operations(program: Program) -> float:
    return memoize_on(program, "operations", lambda: sum([s.operations for s in steps(program)]))


def runs(frame: Frame) -> int:
    """How often its program runs; once, where nobody knows."""
    is_unknown = isinstance(frame.runs, Loop) and frame.runs.length is None
    return 1 if is_unknown else frame.runs.size


def loops_in(program: Program) -> list[Loop]:
    """Its loops; of some nobody knows before how often they run."""
    frames = [e.frame for e in program.walk() if e.prim.subprograms is not None]
    return [f.runs for f in frames if f is not None and isinstance(f.runs, Loop)]


def _moved(program: Program, freed: Set[Atom]) -> list[float]:
    """The bytes that each equation reads and writes.

    An operation whose result is not stored is made where that is used first: with what it is
    made with, it reads an element once.
    """
    equations, in_memory = program.equations, stored(program)
    last = last_uses(program, in_memory)
    spare = in_memory.difference(program.inputs).union(freed)
    in_memory = in_memory.union(program.inputs)
    group_of: dict[Atom, int] = {}
    needed: dict[Atom, float] = {}  # elements of what is not stored
    read: dict[tuple[int, Atom], float] = {}
    moved = [0.0] * len(equations)
    for i in reversed(range(len(equations))):
        e = equations[i]
        alone = any([v in in_memory for v in e.outputs]) or not e.prim.elements.fused
        place = i if alone else min([group_of.get(v, i) for v in e.outputs], default=i)
        elements = max(
            [v.type.size if v in in_memory else needed.get(v, 0) for v in e.outputs], default=0
        )
        in_place = e.prim.elements.written is not None and e.inputs[0] in spare
        in_place = in_place and last[e.inputs[0]] == i
        for n, a in enumerate(e.inputs):
            group_of.setdefault(a, place)
            whole = a.type.size
            size = min(whole, _touched(e, n, elements, in_place))
            if a in in_memory or isinstance(a, Literal):
                before = read.get((place, a), 0.0)
                read[place, a] = min(whole, before + size)
                moved[i] += (read[place, a] - before) * _width(a)
            else:
                needed[a] = min(whole, needed.get(a, 0.0) + size)
        written = _touched(e, 0, elements, in_place) if in_place else math.inf
        moved[i] += sum(
            [min(v.type.size, written) * _width(v) for v in e.outputs if v in in_memory]
        )
    return moved


def _touched(e: Equation, n: int, result_bytes: float, in_place: bool) -> float:
    """How many elements of operand ``n`` it takes to make so many of the results."""
    elements = e.prim.elements
    if n == 0 and elements.windows is not None:
        if elements.written is None:
            return result_bytes
        return e.inputs[elements.written].type.size if in_place else math.inf
    return result_bytes if elements.fused else math.inf


def _width(a: Atom) -> float:
    """The bytes of an element."""
    kind = a.type
    return size_in_bytes(kind) / max(kind.size, 1)


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
