"""The driver of analyses: marks go through a program with its values, by the frames of operations.

A mark says something of a value: that it differs along an axis, that it depends on a random number.
An analysis says what marks the results of an operation have; what goes into the sub-programs of
one, and comes out of them, follows from its frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.base.source import Location
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Equation, Frame, Program, Var
from phalanx.transforms.simplify import fixpoint

__all__ = ["Flow", "Marks", "written_on_one_line"]

Marks = frozenset[Any]
Once = Callable[[Sequence[Marks]], list[Marks]]
NOTHING: Marks = frozenset()


class Flow:
    """Marks on their way through a program.

    Attributes:
        path: the operations whose sub-programs are being looked at, from outside in.
        settled: whether marks are final: in the runs of a loop before the last, some are missing.
        preset: marks that values have besides those that follow from operands.
        origins: the operations that make marks of values without any; None: any may.
    """

    origins: frozenset[Any] | None = None

    def __init__(self) -> None:
        self.path: list[tuple[Equation, Program]] = []
        self.settled = True
        self.preset: dict[Var, Marks] = {}

    # ---- what an analysis says ----

    def begin(self, program: Program) -> None:
        """Before the equations of ``program`` are looked at."""

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        """The marks of the results of an operation without sub-programs, one set for all or a
        sequence of them."""
        return e.prim.result_varies(operands, e.params)

    def enter(self, e: Equation, frame: Frame, operands: Sequence[Marks]) -> list[Marks]:
        """The marks of what the sub-programs see, where those of the operands are known."""
        own = frame.lanes
        if not own:
            return [*operands]
        return [(v - own) | (r.axes & own) for r, v in zip(frame.ins, operands, strict=True)]

    def carry(self, e: Equation, frame: Frame, start: Sequence[Marks], once: Once) -> list[Marks]:
        """The marks of what is carried, in any run."""
        first = frame.carried_in(start)
        if not first:
            return first
        settled, self.settled = self.settled, False
        try:
            return fixpoint(first, lambda carry: frame.carried_out(once(carry)))
        finally:
            self.settled = settled

    def leave(
        self, e: Equation, frame: Frame, operands: Sequence[Marks], carry: Sequence[Marks],
        results: Sequence[Marks],
    ) -> list[Marks]:  # fmt: skip
        """The marks of the results, of which a run has ``results``."""
        own = frame.lanes
        shadowed = own.intersection(NOTHING.union(*operands))  # axes of the same names, outside
        return [(v - own) | shadowed for v in frame.with_carried_out(results, carry)]

    # ---- the pass ----

    def run(self, program: Program, inputs: Sequence[Marks]) -> list[Marks]:
        """The marks of the outputs."""
        self.begin(program)
        preset = self.preset
        values: dict[Any, Marks] = dict(zip(program.inputs, inputs, strict=True))
        for v in program.inputs if preset else ():
            if v in preset:
                values[v] |= preset[v]
        read, quiet = values.get, self.origins is not None
        for e in program.equations:
            operands = [read(a, NOTHING) for a in e.inputs]
            if quiet and not any(operands) and self._is_no_origin(e):
                found = NOTHING
            else:
                found = (self.step if e.prim.subprograms is None else self._through)(e, operands)
            every = (found,) * len(e.outputs) if type(found) is frozenset else found
            for v, marks in zip(e.outputs, every, strict=True):
                values[v] = marks
                if preset and v in preset:
                    values[v] |= preset[v]
        return [read(a, NOTHING) for a in program.outputs]

    def _is_no_origin(self, e: Equation) -> bool:
        """Whether an operation makes no marks of values without any."""
        origins = self.origins or NOTHING
        if e.prim.subprograms is None:
            return e.prim not in origins
        return all([origins.isdisjoint(p.primitives) for p in e.programs])

    def _through(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        """The marks of the results of an operation with sub-programs."""
        frame = e.prim.frame(e.params)
        start = self.enter(e, frame, operands)
        chosen = NOTHING.union(*frame.choices(operands))

        def once(carry: Sequence[Marks]) -> list[Marks]:
            inputs = frame.body_operands(frame.with_carried_in(start, carry))
            columns = zip(*[self._inside(e, p, inputs) for p in frame.programs], strict=True)
            stops = NOTHING
            if frame.condition is not None:
                stops = self._inside(e, frame.condition, inputs)[0]
            return [chosen.union(stops, *column) for column in columns]

        carry = self.carry(e, frame, start, once)
        return self.leave(e, frame, operands, carry, once(carry))

    def _inside(self, e: Equation, program: Program, inputs: Sequence[Marks]) -> list[Marks]:
        self.path.append((e, program))
        try:
            return self.run(program, inputs)
        finally:
            self.path.pop()

    # ---- the user's lines ----

    def place(self, e: Equation) -> Location | None:
        """The user's line of ``e``: that of the call, where it is inside a function of the library,
        which was traced when somebody else called it."""
        for outer, program in self.path:
            if written_on_one_line(program):
                return outer.location
        return e.location


def written_on_one_line(program: Program) -> bool:
    """Whether all equations come from one operation of the user's, as in a library's function."""

    def found() -> bool:
        places = (e.location.spot for e in program.walk() if e.location)
        first = next(places, None)
        return all(place == first for place in places)

    return memoize_on(program, "written on one line", found)
