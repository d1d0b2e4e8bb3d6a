"""Constants of 64 bits that stay so where ``enable_x64`` is off.

A number or an array of NumPy's becomes one of 32 bits there, since NumPy makes those of 64 unasked.
But a constant of a program has the dtype with which it was traced, and a number that a rule writes
beside an array has that of the array. So such constants have classes of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class _Float64(np.float64):
    __slots__ = ()


class _Complex128(np.complex128):
    __slots__ = ()


class _Int64(np.int64):
    __slots__ = ()


class _UInt64(np.uint64):
    __slots__ = ()


class _Array(np.ndarray):
    """One of 64 bits. What is computed of it is an array as any other."""

    def __array_finalize__(self, obj: Any) -> None:
        del obj

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        del context
        return array[()] if return_scalar else np.asarray(array)


_NUMBERS: dict[Any, Any] = {
    np.dtype(cls.__base__): cls for cls in (_Float64, _Complex128, _Int64, _UInt64)
}
_WIDE = {_Array, *_NUMBERS.values()}


def is_wide(x: Any) -> bool:
    """Whether ``x`` is a constant that keeps its 64 bits."""
    return type(x) in _WIDE


def number(value: Any, dtype: np.dtype) -> np.generic:
    """``value`` as a number of ``dtype`` that keeps it."""
    return _NUMBERS.get(dtype, dtype.type)(value)


def constant(value: np.generic | np.ndarray) -> np.generic | np.ndarray:
    """``value`` as a constant that keeps its dtype."""
    if value.dtype not in _NUMBERS:
        return value
    return value.view(_Array) if isinstance(value, np.ndarray) else number(value, value.dtype)
