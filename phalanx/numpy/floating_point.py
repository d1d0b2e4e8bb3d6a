"""Floating-point numbers: signs, exponents, neighbours; NaN and infinities replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, INEXACT
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import never_negative
from phalanx.numpy.logic import isnan, isneginf, isposinf
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    broadcast,
    convert,
    inexact,
    inexact_pair,
    literal,
    no_out,
    number_array,
)
from phalanx.numpy.rounding import trunc
from phalanx.numpy.searching import where


@one_program
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """The elements with nan replaced by ``nan``, infinities by the largest finite numbers.

    Args:
        x: an array, or a number; keys are returned as they are.
        copy: has no meaning: arrays are immutable.
        nan: what takes the place of nan.
        posinf: what takes the place of inf; None for the largest finite number.
        neginf: what takes the place of -inf; None for the least finite number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.nan_to_num(jnp.array([jnp.nan, 1.0])))
    [0. 1.]
    """
    x = as_array("nan_to_num", x)
    dtype = x.aval.dtype
    if dtype not in INEXACT:
        return x
    if dtype in COMPLEXES:
        parts = (nan_to_num(p(x), copy, nan, posinf, neginf) for p in (ops.real, ops.imag))
        return ops.complex(*parts)
    info = dtypes.finfo(dtype)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    out = where(isnan(x), _in_dtype_of(x, nan), x)
    out = where(isposinf(out), _in_dtype_of(x, high), out)
    return where(isneginf(out), _in_dtype_of(x, low), out)


def _in_dtype_of(x: Any, value: Any) -> Any:
    if isinstance(value, (Array, np.ndarray)):
        return convert(number_array("nan_to_num", value), x.aval.dtype, x.aval.weak)
    return literal(x, float(value)) if not x.aval.weak else float(value)


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
        x, y: real numbers, as arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape.

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
        An array of the broadcast shape; integers give float32.

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
        x, y: arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> bool(jnp.nextafter(1.0, 2.0) > 1.0)
    True
    """
    return ops.nextafter(*inexact_pair("nextafter", x, y))
