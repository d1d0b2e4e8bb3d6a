"""Floating-point numbers as integers in the same order, for what compares but knows no NaN.

The bits of a number that is not negative are in its order; those of a negative one are once they
are turned around. A NaN is beyond all numbers on the side on which it is wanted. Numbers of a
byte or less, some of which have no sign, infinity or negative zero, are those of float32 first.
"""

from __future__ import annotations

import numpy as np

from phalanx.core.builder import Builder, Value
from phalanx.core.types import ArrayType


def as_integers(b: Builder, x: Value, nan_is_largest: bool) -> Value:
    """Integers in the order of the floating-point numbers ``x``."""
    x = b.convert(x, _ordered(b.type(x).dtype))
    kind = b.type(x)
    keys = _turned(b, b.bitcast_convert(x, _integer(kind), kind.shape))
    bounds = np.iinfo(_integer(kind))
    nan = b.constant(bounds.max if nan_is_largest else bounds.min, _integer(kind), kind.shape)
    return b.select(b.compare(x, x, "EQ"), keys, nan)


def from_integers(b: Builder, keys: Value, dtype: np.dtype) -> Value:
    """The numbers that ``as_integers`` has made integers of."""
    numbers = b.bitcast_convert(_turned(b, keys), _ordered(dtype), b.type(keys).shape)
    return b.convert(numbers, dtype)


def _ordered(dtype: np.dtype) -> np.dtype:
    """The dtype, with the bits of IEEE 754, whose order is that of ``dtype``."""
    return dtype if dtype.itemsize > 1 else np.dtype(np.float32)


def _integer(kind: ArrayType) -> np.dtype:
    return np.dtype(f"int{8 * kind.dtype.itemsize}")


def _turned(b: Builder, bits: Value) -> Value:
    """``bits``, of negative ones all but the sign the other way round; twice is ``bits``."""
    kind = b.type(bits)
    width = 8 * kind.dtype.itemsize
    sign = b.shift_right_arithmetic(bits, b.constant(width - 1, kind.dtype, kind.shape))
    rest = b.constant(np.iinfo(kind.dtype).max, kind.dtype, kind.shape)
    return b.xor(bits, b.and_(sign, rest))
