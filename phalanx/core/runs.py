"""How often an operation runs its sub-programs: once, again and again, or in every lane of axes."""

from __future__ import annotations

import math
from typing import ClassVar, SupportsIndex

from msgspec import Struct

from phalanx.core.layouts import Axes
from phalanx.core.roles import ROWS

Marks = tuple[bool, ...]  # of each operand or result, whether something is so


class Once(Struct, frozen=True):
    """The program runs once."""

    axes: ClassVar[Axes] = ()
    size: ClassVar[int] = 1


class Loop(Struct, frozen=True):
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


class Lanes(Struct, frozen=True):
    """The program runs at every position of the named ``axes`` at the same time.

    If the axis has further positions elsewhere, as on other devices, ``total`` is the number of
    all: an integer, or an object with ``__index__``.
    """

    axes: Axes
    total: SupportsIndex | None = None

    @property
    def size(self) -> int:
        """How many runs there are."""
        return math.prod(size for _, size in self.axes)


Runs = Once | Loop | Lanes
ONCE = Once()
