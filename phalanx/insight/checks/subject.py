"""What is checked: a traced function, its arguments and results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from msgspec import Struct

from phalanx.api.stages import TracedCall
from phalanx.base.source import Location
from phalanx.control.vectorized import vectorized
from phalanx.core.axes import is_internal
from phalanx.core.program import Atom, Equation, Frame, Program
from phalanx.core.runs import Lanes
from phalanx.core.types import Array, ArrayType
from phalanx.insight.state import Pairs, state_of
from phalanx.primitives.basis import broadcast

__all__ = ["MappedLanes", "Subject", "is_unnamed"]


class MappedLanes(Struct, frozen=True):
    """A mapped function in a program: what runs in every lane of some axes."""

    equation: Equation
    frame: Frame

    @property
    def body(self) -> Program:
        """What a lane does."""
        return self.frame.programs[0]


class Subject:
    """A traced function.

    Attributes:
        call: the function, traced for a call.
        place: the user's line that is told where a finding belongs to the function as a whole.
        given: the leaves of the arguments, if these are known.
    """

    def __init__(self, call: TracedCall, place: Location, leaves: Sequence[Any] = ()) -> None:
        self.call = call
        self.place = place
        self.leaves = leaves if len(leaves) == len(call.types) else ()
        self.program = call.program
        self.name = call.program.name

    @property
    def primitives(self) -> frozenset[Any]:
        """The operations in it, at any depth."""
        return self.program.primitives

    @cached_property
    def programs(self) -> list[Program]:
        """The program and those inside of it, each once."""
        with_programs = [e for e in self.program.walk() if e.prim.subprograms is not None]
        return [*dict.fromkeys([self.program, *(p for e in with_programs for p in e.programs)])]

    @cached_property
    def mapped(self) -> list[MappedLanes]:
        """The outermost functions that run in lanes; what is in those of an axis without a name
        stands beside them."""
        if not any(p.on_devices.region or p.execution.launch or p is vectorized
                   for p in self.primitives):  # fmt: skip
            return []
        return [*_mapped(self.program)]

    # ---- state: arguments that come back as results ----

    @cached_property
    def state(self) -> Pairs:
        """Pairs of an input and an output of the program, by number, of which the one is state and
        the other what it is now."""
        return state_of(self.call, self.lanes.body if self.lanes else self.program)

    @property
    def first_input(self) -> int:
        """The number of the first input that is an argument, behind what was captured."""
        return len(self.call.program.inputs) - len(self.call.types)

    @cached_property
    def lanes(self) -> MappedLanes | None:
        """The mapped function, where the program is nothing else, but for results that are the
        same in all lanes and are given once for each."""
        if not self.mapped:
            return None
        first, *others = self.program.equations
        repeated: dict[Atom, Atom] = {
            e.outputs[0]: e.inputs[0] for e in others if e.prim is broadcast
        }
        results = [repeated.get(a, a) for a in self.program.outputs]
        whole = first.inputs == [*self.program.inputs] and (*first.outputs,) == (*results,)
        return self.mapped[0] if whole and len(repeated) == len(others) else None

    @property
    def types_of_inputs(self) -> tuple[ArrayType, ...]:
        """The types of the inputs, as a lane sees them where the function is mapped."""
        return self.lanes.body.input_types if self.lanes else self.program.input_types

    @property
    def types_of_outputs(self) -> tuple[ArrayType, ...]:
        """The types of the outputs, likewise."""
        return self.lanes.body.output_types if self.lanes else self.program.output_types

    def is_same_in_lanes(self, i: int) -> bool | None:
        """Whether what is given for input number ``i`` is the same for all lanes of the mapped
        function; None where nobody can tell, as of what has a shape alone."""
        number = i - self.first_input
        if self.lanes is None or not self.leaves or number < 0:
            return None
        cut = [(d, axes) for d, axes in enumerate(self.lanes.frame.body_roles[i].layout) if axes]
        x: Any = self.leaves[number]
        if len(cut) != 1 or not isinstance(x, np.ndarray | Array) or not x.size:
            return None
        ((d, axes),) = cut
        sizes = dict(self.lanes.frame.runs.axes)
        lanes = np.moveaxis(np.asarray(cast(Any, x)), d, 0).reshape(
            math.prod([sizes[a] for a in axes]), -1
        )
        return bool((lanes == lanes[0]).all())

    def input_name(self, i: int) -> str:
        """What the user calls input number ``i``."""
        return self.call.names.after(map(str, self.call.captured))[i]


def _mapped(program: Program) -> Iterator[MappedLanes]:
    for e in program.walk(into=lambda e: not _is_mapped(e) or is_unnamed(e)):
        if _is_mapped(e):
            yield MappedLanes(e, e.prim.frame(e.params))


def _is_mapped(e: Equation) -> bool:
    return e.prim.subprograms is not None and isinstance(e.prim.frame(e.params).runs, Lanes)


def is_unnamed(e: Equation) -> bool:
    """Whether an operation is in lanes of a ``vmap`` whose axis has no name."""
    axes = e.prim.frame(e.params).runs.axes
    return e.prim is vectorized and all([is_internal(axis) for axis, _ in axes])
