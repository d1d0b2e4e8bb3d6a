"""``r_`` and ``c_``: arrays, numbers and ranges put together between brackets."""

from __future__ import annotations

from typing import Any

import phalanx.numpy as jnp
from phalanx.base.errors import ArgumentError
from phalanx.base.kinds import SLICE, TUPLE
from phalanx.core.types import Array

__all__ = ["c_", "r_"]


class _Glue:
    """Puts together what stands between brackets, along an axis; ranges are written as slices.

    A string in front says how, in up to three numbers: along which axis, how many dimensions
    everything has at least, and where the dimensions start that it has itself.
    """

    def __init__(self, name: str, axis: int, rank: int, start: int, doc: str) -> None:
        self._name, self._usual = name, (axis, rank, start)
        self.__doc__ = doc

    def __repr__(self) -> str:
        return f"phalanx.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Array:
        items: list[Any] = list(key) if isinstance(key, TUPLE) else [key]
        axis, rank, start = self._usual
        if items and isinstance(items[0], str):
            word: str = items.pop(0)
            if word in ("r", "c"):
                return _matrix(items, word == "c")
            axis, rank, start = self._numbers(word)
        if not items:
            raise ArgumentError(f"{self._name}: nothing is put together")
        return jnp.concatenate([_raised(_array(item), rank, start) for item in items], axis=axis)

    def _numbers(self, word: str) -> tuple[int, int, int]:
        try:
            numbers = [int(part) for part in word.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ArgumentError(
                f"{self._name}: {word!r} is neither 'r', 'c' nor up to three integers"
            )
        axis, rank, start = [*numbers, *self._usual[len(numbers) :]]
        return axis, rank, start


def _array(item: Any) -> Any:
    """``item`` as an array; a slice as its range, with an imaginary step of so many points."""
    if not isinstance(item, SLICE):
        return jnp.asarray(item)
    start, stop, step = item.start or 0, item.stop, item.step or 1
    if isinstance(step, complex):
        return jnp.linspace(start, stop, int(abs(step)))
    return jnp.arange(start, stop, step)


def _raised(x: Any, rank: int, start: int) -> Any:
    """``x`` with at least ``rank`` dimensions, of which its own start at ``start``."""
    missing = max(rank - x.ndim, 0)
    if not missing or not rank:
        return x
    before = start if start >= 0 else missing + start + 1
    if not 0 <= before <= missing:
        before = missing
    return jnp.expand_dims(x, tuple([*range(before), *range(before + x.ndim, rank)]))


def _matrix(items: list[Any], column: bool) -> Array:
    """The items along rows, as a matrix: a vector is its only row, or its only column."""
    x = jnp.concatenate([jnp.atleast_1d(_array(item)) for item in items], axis=-1)
    if x.ndim > 1:
        return x
    return x[:, None] if column else x[None]


r_ = _Glue(
    "r_",
    0,
    1,
    -1,
    """Arrays, numbers and ranges one after the other, along the first axis.

>>> import numpy as np
>>> print(jnp.r_[1:4, 0, np.array([5, 6])])
[1 2 3 0 5 6]
""",
)
c_ = _Glue(
    "c_",
    -1,
    2,
    0,
    """Arrays beside each other, along the last axis; vectors are columns.

>>> import numpy as np
>>> print(jnp.c_[np.arange(2), np.ones(2)])
[[0. 1.]
 [1. 1.]]
""",
)
