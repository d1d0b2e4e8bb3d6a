"""Sub-programs of an operation, and how its operands and results stand to theirs.

An operation with sub-programs runs one of them once, again and again, or in every lane of an axis.
What each operand is to the program, and what each result is made of, is its *role*; everything
that transformations do to such operations follows from the roles.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from phalanx.core.types import ArrayType

if TYPE_CHECKING:
    from phalanx.core.program import Program

T = TypeVar("T")
Marks = tuple[bool, ...]  # of each operand or result, whether something is so


@dataclass(frozen=True, slots=True)
class Role:
    """What an operand or a result is to a program; ``dim`` is the dimension that has the runs."""

    name: str
    dim: int | None = None

    def inner(self, type: ArrayType) -> ArrayType:
        """The type that the program sees of an operand of ``type``."""
        if self.dim is None:
            return type
        shape = type.shape
        return type.update(shape=shape[: self.dim] + shape[self.dim + 1 :])

    def outer(self, type: ArrayType, size: int) -> ArrayType:
        """The type of the result that ``size`` runs make of ``type``."""
        if self.dim is None:
            return type
        return type.update(shape=(*type.shape[: self.dim], size, *type.shape[self.dim :]))

    def __str__(self) -> str:
        return self.name if self.dim is None else f"{self.name}@{self.dim}"

    __repr__ = __str__


FIXED = Role("fixed")  # whole, the same in every run
CARRY = Role("carry")  # what one run gives, the next one takes; operand and result number k match
CHOICE = Role("choice")  # the number of the program that runs; programs do not see it


@functools.cache
def each(dim: int) -> Role:
    """One slice along ``dim`` for every run."""
    return Role("each", dim)


@dataclass(frozen=True, slots=True)
class Once:
    """The program runs once."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class Loop:
    """The program runs ``length`` times, one run after the other; None: nobody knows before."""

    length: int | None
    reverse: bool = False

    @property
    def size(self) -> int:
        """The length of a dimension that holds a slice for every run."""
        return self.length or 0


@dataclass(frozen=True, slots=True)
class Lanes:
    """The program runs in ``size`` lanes of a named axis at the same time."""

    axis: Any
    size: int


Runs = Once | Loop | Lanes
ONCE = Once()
Roles = tuple[Role, ...]


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
        size = self.runs.size
        types = self.programs[0].output_types
        return tuple([r.outer(t, size) for r, t in zip(self.outs, types, strict=True)])

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

    @property
    def stored(self) -> Role:
        """The role of a further result, and of the operand that takes it to another such frame."""
        return FIXED if isinstance(self.runs, Once) else each(0)

    @property
    def state(self) -> Role:
        """The role of a value that goes through the operation from run to run."""
        return CARRY if self.is_loop else FIXED
