"""Random bits, and what is one step away from them: uniform numbers and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.lengths import Length
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, is_scalar, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.primitives import (
    add,
    bitcast,
    clamp,
    convert,
    gt,
    le,
    lt,
    mul,
    or_,
    rem,
    rounded_apart,
    select,
    shift_right_logical,
    sub,
    value_of,
)
from phalanx.primitives import max as maximum
from phalanx.primitives.shape import broadcast_to, slice_dim, squeeze
from phalanx.random.arguments import (
    as_parameter,
    as_shape,
    float_dtype,
    integer_dtype,
    shape_of_draws,
)
from phalanx.random.generators import source, sources, unsigned
from phalanx.random.keys import single

# ---- bits -----------------------------------------------------------------------------------


@takes_out_sharding
def bits(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Uniformly random bits.

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: an unsigned integer dtype; by default uint32, or uint64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Unsigned integers of ``shape``, of uint32 by default.

    Raises:
        TypeError: ``dtype`` is no unsigned integer dtype.

    >>> from phalanx import random
    >>> random.bits(random.key(0), (3,)).dtype
    dtype('uint32')
    """
    chosen = dtypes.default_uint() if dtype is None else dtypes.requested(dtype)
    if not dtypes.is_unsigned(chosen):
        raise TypeError(f"bits: dtype must be an unsigned integer dtype, got {chosen}")
    return _bits(single("bits", key), shape=as_shape("bits", shape), dtype=chosen)


@staged
def _bits(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return draw_bits(key, shape, 8 * dtype.itemsize)


def draw_bits(key: Any, shape: tuple[int, ...], width: int) -> Any:
    """Random unsigned integers of ``width`` 8, 16, 32 or 64 bits, inside a staged function."""
    generator, words = source(key)
    return generator.bits(words, shape, width)


# ---- uniform numbers ------------------------------------------------------------------------


@takes_out_sharding
def uniform(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers uniform in [minval, maxval).

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        minval: the lower bound, which can occur: a number, or an array that broadcasts to
            ``shape``.
        maxval: the upper bound, which does not: a number, or an array that broadcasts to ``shape``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``.

    Raises:
        TypeError: ``dtype`` is no floating-point dtype.
        ValueError: the bounds do not broadcast to ``shape``.

    >>> from phalanx import random
    >>> print(random.uniform(random.key(0), (2, 3)).round(3))
    [[0.948 0.979 0.332]
     [0.469 0.57  0.166]]
    """
    chosen = float_dtype("uniform", dtype)
    if type(minval) is float is type(maxval) and (minval, maxval) == (0.0, 1.0):
        key = single("uniform", key)
        return _uniform(key, None, None, shape=as_shape("uniform", shape), dtype=chosen)
    low, high = as_parameter(minval, chosen), as_parameter(maxval, chosen)
    lengths = _shape_between(as_shape("uniform", shape), low, high)
    return _uniform(single("uniform", key), low, high, shape=lengths, dtype=chosen)


def _shape_between(shape: tuple[int, ...], low: Any, high: Any) -> tuple[int, ...]:
    """The shape of numbers between two bounds: that of one number is that of bounds of length 1."""
    bounds = typeof(low).shape, typeof(high).shape
    if not shape and all(n == 1 for lengths in bounds for n in lengths):
        return max(bounds, key=len)
    return shape_of_draws("uniform", shape, low, high)


@staged
def _uniform(key: Any, low: Any, high: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    low, high = 0.0 if low is None else low, 1.0 if high is None else high
    return draw_uniform(key, shape, dtype, low, high)


def draw_uniform(
    key: Any, shape: tuple[int, ...], dtype: np.dtype, low: Any = 0.0, high: Any = 1.0
) -> Any:
    """Random mantissas under the exponent of 1, moved from [1, 2) to [low, high).

    Whether a product and a sum are rounded together or each by itself is up to the compiler, and
    depends on a CPU on what else it computes in the same loop. So what moves the numbers has a loop
    of its own there: they are the same to the last bit in every program that draws them, eager or
    compiled.
    """
    return as_uniform(draw_bits(key, shape, bits_of(dtype)), dtype, low, high)


def bits_of(dtype: np.dtype) -> int:
    """How many random bits a uniform number of ``dtype`` is made of."""
    info = dtypes.finfo(dtype)
    return info.bits if info.nmant >= 8 else 8


def as_uniform(drawn: Any, dtype: np.dtype, low: Any = 0.0, high: Any = 1.0) -> Any:
    """The uniform numbers that random bits stand for, see ``draw_uniform``."""
    info, shape = dtypes.finfo(dtype), typeof(drawn).shape
    standard = is_scalar(low) and is_scalar(high) and (low, high) == (0, 1)
    if not standard:
        drawn = rounded_apart(drawn)
    mantissas = shift_right_logical(drawn, bits_of(dtype) - info.nmant)
    words = convert(mantissas, dtype=unsigned(info.bits), weak=False)
    one = int(np.ones((), dtype).view(unsigned(info.bits)))
    unit = sub(bitcast(or_(words, one), dtype=dtype), 1)
    if standard:
        return maximum(unit, 0)
    low = broadcast_to(as_parameter(low, dtype), shape)
    high = broadcast_to(as_parameter(high, dtype), shape)
    return maximum(low, add(mul(unit, sub(high, low)), low))


# ---- integers -------------------------------------------------------------------------------


@takes_out_sharding
def randint(
    key: KeyLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Integers uniform in [minval, maxval); minval where that is empty.

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        minval: the least integer, or an integer array that broadcasts to ``shape``. Of floats the
            fraction is cut, and those beyond the dtype's range are brought into it.
        maxval: one more than the greatest integer, given as ``minval`` is.
        dtype: an integer dtype; int32 by default, or int64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Integers of ``shape``, of int32 by default.

    Raises:
        TypeError: ``dtype`` is not integer, or a bound is complex or no number.
        ValueError: the bounds do not broadcast to ``shape``.

    >>> from phalanx import random
    >>> dice = random.randint(random.key(0), (100,), 1, 7)
    >>> int(dice.min()), int(dice.max())
    (1, 6)
    """
    chosen = integer_dtype("randint", dtype)
    drawn = chosen if dtypes.iinfo(chosen).bits >= 32 else np.dtype("int32")
    low, _ = _bound("minval", minval, drawn)
    high, beyond = _bound("maxval", maxval, drawn)
    lengths = shape_of_draws("randint", as_shape("randint", shape), low, high)
    return _randint(single("randint", key), low, high, beyond, shape=lengths, dtype=chosen)


def _bound(name: str, x: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """A bound brought into the range of ``dtype``; whether it was above, or None if it cannot."""
    limits = dtypes.iinfo(dtype)
    if isinstance(x, Length):
        return value_of(x, dtype), None
    if is_scalar(x) and not isinstance(x, complex):
        clipped = max(limits.min, min(int(x), limits.max))
        return dtypes.scalar(clipped, dtype), np.bool_(True) if int(x) > limits.max else None
    x = x if hasattr(x, "dtype") else np.asarray(x)
    type = typeof(x)
    if dtypes.is_floating(type.dtype):
        return convert(x, dtype=dtype, weak=False), None
    if not dtypes.is_integer(type.dtype):
        raise TypeError(f"randint: {name} must be integer, got {type}")
    if type.dtype == dtype:
        return x, None
    own = dtypes.iinfo(type.dtype)
    most = min(own.max, limits.max)
    clipped = clamp(max(own.min, limits.min), x, most)
    return convert(clipped, dtype=dtype, weak=False), gt(x, most)


@staged
def _randint(
    key: Any, low: Any, high: Any, beyond: Any, *, shape: tuple[int, ...], dtype: np.dtype
) -> Any:
    """A random number modulo the span, from one word more than it needs.

    Where the span has more than half the bits of a word, the upper word drops out, and the
    numbers below 2^bits mod span come out more often, by a factor of at most 1 + span / 2^bits.
    """
    drawn, limits = typeof(low).dtype, dtypes.iinfo(dtype)
    width = 8 * drawn.itemsize
    low, high = broadcast_to(low, shape), broadcast_to(high, shape)
    if drawn != dtype:  # wide enough to hold the end of the range itself
        low = clamp(limits.min, low, limits.max)
        high = clamp(limits.min, high, limits.max + 1)
    span = convert(sub(high, low), dtype=unsigned(width), weak=False)
    if drawn == dtype and beyond is not None:
        span = select(broadcast_to(beyond, shape), add(span, 1), span)
    span = select(le(high, low), 1, span)
    upper, lower = (draw_bits(k, shape, width) for k in sources(key, 2))
    shift = rem(1 << (width // 2), span)
    shift = rem(mul(shift, shift), span)
    offset = rem(add(mul(rem(upper, span), shift), rem(lower, span)), span)
    out = add(low, convert(offset, dtype=drawn, weak=False))
    return out if drawn == dtype else convert(out, dtype=dtype, weak=False)


def is_high(who: str, mode: str | None) -> bool:
    """Whether ``mode`` is "high", where it may be "low" or None, too.

    Raises:
        ValueError: it is something else.
    """
    if mode not in ("high", "low", None):
        raise ValueError(f"{who}: mode must be 'high' or 'low', got {mode!r}")
    return mode == "high"


def draw_two(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
    """Uniform numbers in two parts: what one number can tell, and what lies below."""
    both = draw_uniform(key, (2, *shape), dtype)
    coarse, fine = (squeeze(slice_dim(both, i, i + 1, 0), (0,)) for i in (0, 1))
    return coarse, mul(fine, float(dtypes.finfo(dtype).eps))


def draw_signs(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """1 or -1, inside a staged function."""
    heads = lt(draw_uniform(key, shape, dtypes.default_float()), 0.5)
    return sub(mul(convert(heads, dtype=dtype, weak=False), 2), 1)
