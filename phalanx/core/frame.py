"""Sub-programs of an operation, and how its operands and results stand to theirs.

An operation with sub-programs runs one of them once, again and again, or in every lane of an axis.
What each operand is to the program, and what each result is made of, is its *role*; everything
that transformations do to such operations follows from the roles.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypeVar

from phalanx.core.axes import typed
from phalanx.core.region import Axes
from phalanx.core.roles import CARRY, CHOICE, FIXED, ROWS, Role, Roles, slices
from phalanx.core.types import ArrayType

if TYPE_CHECKING:
    from phalanx.core.program import Program

T = TypeVar("T")
Marks = tuple[bool, ...]  # of each operand or result, whether something is so


@dataclass(frozen=True, slots=True)
class Once:
    """The program runs once."""

    axes: ClassVar[Axes] = ()
    size: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Loop:
    """The program runs ``length`` times, one run after the other; None: nobody knows before."""

    length: int | None
    reverse: bool = False

    @property
    def axes(self) -> Axes:
        """The axis along which a slice lies for every run."""
        return ((ROWS, self.size),)

    @property
    def size(self) -> int:
        """The length of a dimension that holds a slice for every run."""
        return self.length or 0


@dataclass(frozen=True, slots=True)
class Lanes:
    """The program runs at every position of the named ``axes`` at the same time.

    Where the axis has further positions, which operands and results here are not of, ``total`` is
    an integer or what tells one: how many it has in all.
    """

    axes: Axes
    total: SupportsIndex | None = None

    @property
    def size(self) -> int:
        """How many runs there are."""
        return math.prod(size for _, size in self.axes)


Runs = Once | Loop | Lanes
ONCE = Once()


@dataclass(frozen=True, slots=True)
class Frame:
    """Sub-programs, and a role for each operand (``ins``) and result (``outs``) of an operation.

    ``programs`` are alternatives: they take the operands, except for a CHOICE, and give the
    results, in order. The ``condition`` of a loop takes what they take and says whether there is
    another run.
    """

    programs: tuple[Program, ...]
    ins: Roles
    outs: Roles
    runs: Runs = ONCE
    condition: Program | None = None

    @property
    def every(self) -> Iterator[Program]:
        """All sub-programs."""
        yield from self.programs
        if self.condition is not None:
            yield self.condition

    # ---- another frame ----

    def rewritten(
        self, change: Callable[[Program], Program], ins: Roles = (), outs: Roles = ()
    ) -> Frame:
        """This frame with ``change`` made to all sub-programs.

        What they take then before their operands has the roles ``ins``, what the programs give
        before their results the roles ``outs``.
        """
        return replace(
            self,
            programs=tuple([change(p) for p in self.programs]),
            condition=self.condition and change(self.condition),
            ins=tuple(self.with_first(ins, self.ins)),
            outs=(*outs, *self.outs),
        )

    def with_first(self, more: Iterable[T], values: Sequence[T]) -> list[T]:
        """``values``, one for each operand, with ``more`` before what the programs see of them."""
        return [*self.choices(values), *more, *self.shown(values)]

    def into(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of an operation with this frame in place of its own.

        Operations with sub-programs call what makes up their frames by the same names.
        """
        parts = {
            "program": self.programs[0],
            "programs": self.programs,
            "condition": self.condition,
            "ins": self.ins,
            "outs": self.outs,
            "reverse": isinstance(self.runs, Loop) and self.runs.reverse,
        }
        return {name: parts.get(name, value) for name, value in params.items()}

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells this frame from others around its first program.

        What is made of a frame is kept with that program, and each of the others may be the first
        one somewhere else, or be the same: so none is held.
        """
        _, *others = self.every
        return (*map(weakref.ref, others), self.ins, self.outs, self.runs)

    @property
    def result_types(self) -> tuple[ArrayType, ...]:
        """The types of the results of the operation."""
        axes, types = self.runs.axes, self.programs[0].output_types
        return tuple([r.outer(t, axes) for r, t in zip(self.outs, types, strict=True)])

    @property
    def seen(self) -> Roles:
        """The roles of the operands that the programs see, in order."""
        return tuple([r for r in self.ins if r is not CHOICE])

    def shown(self, values: Iterable[T]) -> list[T]:
        """Of ``values``, one for each operand, those for what the programs see."""
        return [v for r, v in zip(self.ins, values, strict=True) if r is not CHOICE]

    def choices(self, values: Iterable[T]) -> list[T]:
        """Of ``values``, one for each operand, those for what chooses between programs."""
        return [v for r, v in zip(self.ins, values, strict=True) if r is CHOICE]

    def carried_in(self, values: Iterable[T]) -> list[T]:
        """Of ``values``, one for each operand, those for what is carried."""
        return [v for r, v in zip(self.ins, values, strict=True) if r is CARRY]

    def carried_out(self, values: Iterable[T]) -> list[T]:
        """Of ``values``, one for each result, those for what is carried."""
        return [v for r, v in zip(self.outs, values, strict=True) if r is CARRY]

    def with_carry(self, values: Sequence[T], carry: Sequence[T]) -> list[T]:
        """``values``, one for each operand, with those of ``carry`` for what is carried."""
        new = iter(carry)
        return [next(new) if r is CARRY else v for r, v in zip(self.ins, values, strict=True)]

    @property
    def is_loop(self) -> bool:
        """Whether the program runs again and again."""
        return isinstance(self.runs, Loop)

    def stored(self, type: ArrayType) -> Role:
        """The role of a further result, of which a run gives ``type``, and of the operand that
        takes it to another such frame: a slice for each of the runs that may differ."""
        axes = [axis for axis, _ in self.runs.axes]
        alike = typed(axes) - type.varying
        return slices(tuple([(axis,) for axis in axes if axis not in alike]))

    @property
    def state(self) -> Role:
        """The role of a value that goes through the operation from run to run."""
        return CARRY if self.is_loop else FIXED

    # ---- lanes ----

    @property
    def lanes(self) -> frozenset[Any]:
        """The named axes that are known to the programs alone."""
        return frozenset([a for a, _ in self.runs.axes]) if isinstance(self.runs, Lanes) else _NONE

    def alike(self, role: Role) -> Axes:
        """The named axes along which all lanes have the same of what has ``role``, in full size."""
        if not isinstance(self.runs, Lanes):
            return ()
        alike = [(axis, size) for axis, size in self.runs.axes if axis not in role.axes]
        if self.runs.total is not None:
            return tuple([(axis, index(self.runs.total)) for axis, _ in alike])
        return tuple(alike)


_NONE: frozenset[Any] = frozenset()
