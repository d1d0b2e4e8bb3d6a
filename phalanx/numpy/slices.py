"""Parts of references whose start is known only while running: ``ref[ds(i, 8)]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base.kinds import TUPLE
from phalanx.lax.slicing import dynamic_slice, dynamic_update_slice
from phalanx.numpy.at import Part


class Slice(Struct, frozen=True, eq=False):
    """``size`` positions of a dimension, from ``start``, ``stride`` apart.

    Attributes:
        start: the first, a number or an array of a number.
        size: how many.
        stride: the distance from each to the next.
    """

    start: Any
    size: int
    stride: int = 1

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the first is known only while running."""
        return not isinstance(self.start, (int, np.integer))

    @property
    def span(self) -> int:
        """How many positions there are from the first to the last."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


def read_part(x: Any, index: Any) -> Any:
    """``x[index]``, where entries of ``index`` may be a ``Slice``."""
    starts, sizes, rest = _window(index, x.shape)
    return Part(x if starts is None else dynamic_slice(x, starts, sizes), rest).get()


def written_part(x: Any, index: Any, write: Callable[[Part], Any]) -> Any:
    """``x`` with what ``write`` makes of the part of ``index``."""
    starts, sizes, rest = _window(index, x.shape)
    if starts is None:
        return write(Part(x, rest))
    return dynamic_update_slice(x, write(Part(dynamic_slice(x, starts, sizes), rest)), starts)


def _window(index: Any, shape: Sequence[int]) -> tuple[list[Any] | None, Sequence[int], Any]:
    """The starts and lengths of what ``index`` names at most, and what it names of that.

    There are no starts if ``index`` has no ``Slice``.
    """
    entries = index if isinstance(index, TUPLE) else (index,)
    if Slice not in map(type, entries):
        return None, shape, index
    starts, sizes = [0] * len(shape), [*shape]
    rest, dim = [*entries], 0
    for i, e in enumerate(entries):
        if type(e) is Slice:
            starts[dim], sizes[dim] = e.start, e.span
            rest[i] = slice(None, None, e.stride)
        dim += len(shape) - _taken(entries) if e is ... else _dims_of(e)
    return starts, sizes, tuple(rest)


def _taken(entries: Sequence[Any]) -> int:
    return sum(_dims_of(e) for e in entries if e is not ...)


def _dims_of(entry: Any) -> int:
    """How many dimensions an entry of an index is about."""
    if entry is None:
        return 0
    return entry.ndim if getattr(entry, "dtype", None) == np.bool_ else 1
