"""Elementwise rounding, and the representation of floating-point numbers: signs, exponents."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, INEXACT
from phalanx.base.lengths import integer
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import integer_floor_divide, literal, never_negative, over
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    broadcast,
    convert,
    inexact,
    inexact_pair,
    no_out,
    number_array,
)


@one_program
def floor(x: ArrayLike, /) -> Array:
    """The greatest integer not above x, elementwise, in the dtype of x.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(jnp.floor(jnp.array([-1.5, 1.5])))
    [-2.  1.]
    """
    x = number_array("floor", x)
    return ops.floor(x) if x.aval.dtype in INEXACT else x


@one_program
def ceil(x: ArrayLike, /) -> Array:
    """The least integer not below x, elementwise, in the dtype of x.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(jnp.ceil(jnp.array([-1.5, 1.5])))
    [-1.  2.]
    """
    x = number_array("ceil", x)
    return ops.ceil(x) if x.aval.dtype in INEXACT else x


@one_program
def trunc(x: ArrayLike) -> Array:
    """The numbers without their fractional parts, elementwise, in the dtype of x.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(jnp.trunc(jnp.array([-1.5, 1.5])))
    [-1.  1.]
    """
    x = number_array("trunc", x)
    if x.aval.dtype not in INEXACT:
        return x
    return ops.select(ops.lt(x, literal(x, 0)), ops.ceil(x), ops.floor(x))


fix = trunc


@one_program
def rint(x: ArrayLike, /) -> Array:
    """The nearest integer, halves to the even one, elementwise, as floating-point numbers.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> print(jnp.rint(jnp.array([0.5, 1.5, 2.5])))
    [0. 2. 2.]
    """
    return round(inexact("rint", x))


@one_program
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The elements rounded to ``decimals`` decimal places, halves to the even digit.

    A negative number of decimals rounds to tens, hundreds, ...

    Args:
        a: an array, or a number.
        decimals: after how many decimal places; if negative, before the point.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the shape and dtype of ``a``.

    >>> print(jnp.round(jnp.array([1.25, 2.5])), jnp.round(jnp.array([15, 25]), -1))
    [1. 2.] [20 20]
    """
    x = number_array("round", a)
    decimals = integer("round", "decimals", decimals)
    dtype = x.aval.dtype
    if dtype not in INEXACT:
        return x if decimals >= 0 or dtype == np.bool_ else _round_integers(x, 10**-decimals)
    if dtype in COMPLEXES:
        return ops.complex(round(ops.real(x), decimals), round(ops.imag(x), decimals))
    if decimals == 0:
        return ops.round(x, mode="even")
    wide = convert(x, np.dtype("float32")) if dtype.itemsize < 4 else x
    factor = literal(wide, 10.0 ** builtins.abs(decimals))
    if decimals > 0:
        scaled = over(ops.round(ops.mul(wide, factor), mode="even"), factor)
    else:
        scaled = ops.mul(ops.round(over(wide, factor), mode="even"), factor)
    return convert(scaled, dtype, x.aval.weak)


around = round


def _round_integers(x: Any, unit: int) -> Any:
    step, half = literal(x, unit), literal(x, unit // 2)
    down = integer_floor_divide(x, step)
    rest = ops.sub(x, ops.mul(down, step))
    tie_up = ops.and_(ops.eq(rest, half), ops.ne(ops.rem(down, literal(x, 2)), literal(x, 0)))
    up = ops.or_(ops.gt(rest, half), tie_up)
    return ops.mul(ops.select(up, ops.add(down, literal(x, 1)), down), step)


@one_program
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integral part of x, elementwise, both with the sign of x.

    Args:
        x: real numbers, as an array, or a number.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        Two arrays of the shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> [float(v) for v in jnp.modf(-2.5)]
    [-0.5, -2.0]
    """
    no_out("modf", out)
    x = inexact("modf", x)
    whole = trunc(x)
    infinite = ops.eq(ops.abs(x), literal(x, np.inf))
    rest = ops.select(infinite, literal(x, 0), ops.sub(x, whole))
    return copysign(rest, x), whole


# ---- the representation of floating-point numbers -------------------------------------------


@one_program
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign of x is minus, elementwise; minus zero counts.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(jnp.signbit(jnp.array([-1.0, -0.0, 0.0])))
    [ True  True False]
    """
    number = as_array("signbit", x)
    dtype = number.dtype
    if dtype in COMPLEXES:
        raise TypeError(f"signbit: real numbers are needed, got {number.aval}")
    if dtype in INEXACT:
        number = ops.bitcast(number, dtype=_bits(dtype))
    if never_negative(number):
        return ops.full(number.shape, False, np.dtype(bool))
    return ops.lt(number, literal(number, 0))


def _bits(dtype: np.dtype) -> np.dtype:
    """The integers of as many bytes."""
    return np.dtype(f"int{8 * dtype.itemsize}")


@one_program
def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The absolute value |x| with the sign of y, elementwise.

    Args:
        x: real numbers, as an array, or a number.
        y: real numbers, as an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(jnp.copysign(jnp.array([1.0, 2.0]), -0.0))
    [-1. -2.]
    """
    size, sign_of = arrays("copysign", x, y, to=dtypes.to_inexact)
    size = ops.abs(size)
    return ops.select(signbit(sign_of), ops.neg(size), size)


@one_program
def ldexp(x: ArrayLike, exponent: ArrayLike, /) -> Array:
    """Numbers times powers of two, x 2^exponent, elementwise, for exponents that are integers.

    Args:
        x: an array, or a number.
        exponent: integers; broadcast with x.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    Raises:
        TypeError: the exponents are no integers.

    >>> print(jnp.ldexp(jnp.array([1.0, 3.0]), 2))
    [ 4. 12.]
    """
    x, n = inexact("ldexp", x), as_array("ldexp", exponent)
    if x.aval.dtype in COMPLEXES or n.aval.dtype in INEXACT:
        raise TypeError(f"ldexp: real numbers and integers are needed, got {x.aval} and {n.aval}")
    x, n = broadcast("ldexp", [x, n])
    return _scaled(x, n)


def _scaled(x: Any, n: Any) -> Any:
    """x 2^n in three steps, each by a power of two that the dtype has.

    So large numbers come from the smallest ones and the other way round, and nothing on the way
    is larger or smaller than both ends.
    """
    layout = _Layout(x.aval.dtype)
    most = np.int32(layout.bias - 1)
    rest = convert(n, np.dtype("int32")) if n.aval.dtype.itemsize < 4 else n
    rest = convert(ops.clamp(literal(rest, -4 * most), rest, literal(rest, 4 * most)), most.dtype)
    for _ in range(3):
        step = ops.clamp(-most, rest, most)
        x = ops.mul(x, layout.power_of_two(step))
        rest = ops.sub(rest, step)
    return x


@one_program
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Mantissa m and exponent e with x = m 2^e and 1/2 <= |m| < 1, elementwise.

    Of 0, infinities and nan the mantissa is the number itself, and the exponent 0.

    Args:
        x: an array, or a number.

    Returns:
        Mantissas of the dtype of ``x``, and exponents of int32, both of its shape.

    Raises:
        TypeError: ``x`` is complex.

    >>> [float(v) for v in jnp.frexp(12.0)]
    [0.75, 4.0]
    """
    x = inexact("frexp", x)
    if x.aval.dtype in COMPLEXES:
        raise TypeError(f"frexp: real numbers are needed, got {x.aval}")
    exponent = _Layout(x.aval.dtype).exponent(x)
    mantissa = _scaled(x, ops.neg(exponent))
    return ops.select(ops.eq(x, x), mantissa, ops.mul(x, x)), exponent  # of nan the slope is nan


class _Layout:
    """How a floating-point dtype lays out its bits: sign, exponent plus bias, mantissa."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype, self.digits = dtype, int(dtypes.finfo(dtype).nmant)
        self.width = 8 * dtype.itemsize
        self.bias = 2 ** (self.width - self.digits - 2) - 1
        self.bits = np.dtype(f"int{self.width}")

    def power_of_two(self, n: Any) -> Any:
        """2^n, of int32 in the range of the dtype."""
        raised = convert(ops.add(n, np.int32(self.bias)), self.bits)
        digits = dtypes.scalar(self.digits, self.bits)
        return ops.bitcast(ops.shift_left(raised, digits), dtype=self.dtype)

    def exponent(self, x: Any) -> Any:
        """The e with 2^(e-1) <= |x| < 2^e, as int32; 0 where there is none."""
        bits = ops.bitcast(x, dtype=self.bits)
        bits = ops.and_(bits, literal(bits, 2 ** (self.width - 1) - 1))
        raised = ops.shift_right_logical(bits, literal(bits, self.digits))
        # below the normal numbers the first digit that is set tells, as in fixed point
        first = ops.sub(literal(bits, self.width - self.digits), ops.clz(bits))
        raised = ops.select(ops.eq(raised, literal(bits, 0)), first, raised)
        out = ops.sub(convert(raised, np.dtype("int32")), np.int32(self.bias - 1))
        # where the device takes numbers that small for 0, they are 0 here, too
        none = ops.or_(ops.eq(x, literal(x, 0)), ops.not_(ops.is_finite(x)))
        return ops.select(none, np.int32(0), out)


@one_program
def spacing(x: ArrayLike, /) -> Array:
    """From x to the next floating-point number away from zero, elementwise.

    It is constant but for steps, so its derivative is 0.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    Raises:
        TypeError: ``x`` is complex.

    >>> bool(jnp.spacing(1.0) == jnp.finfo("float32").eps)
    True
    """
    values = ops.stop_gradient(inexact("spacing", x))
    type = values.aval
    if dtypes.is_complex(type.dtype):
        raise TypeError(f"spacing: real numbers are needed, got {type}")
    low, high = (ops.full(type.shape, end, type.dtype) for end in (-np.inf, np.inf))
    # Subnormal numbers are 0 where they are compared, and -0.0 counts as positive.
    zero = ops.eq(ops.bitcast(values, dtype=_bits(type.dtype)), np.iinfo(_bits(type.dtype)).min)
    away = ops.select(ops.and_(signbit(values), ops.not_(zero)), low, high)
    tiny = literal(values, float(dtypes.finfo(type.dtype).tiny))  # below it nothing is subtracted
    least = ops.nextafter(ops.full(type.shape, 0, type.dtype), away)
    gap = ops.sub(ops.nextafter(values, away), values)
    return ops.select(ops.lt(ops.abs(values), tiny), least, gap)


@one_program
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The floating-point number next to x in the direction of y, elementwise.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> bool(jnp.nextafter(1.0, 2.0) > 1.0)
    True
    """
    return ops.nextafter(*inexact_pair("nextafter", x, y))
