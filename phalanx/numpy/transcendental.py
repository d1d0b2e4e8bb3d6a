"""Elementwise exponentials, logarithms, trigonometric and hyperbolic functions.

Integers and booleans are converted to the default floating-point dtype.
"""

from __future__ import annotations

import math
from typing import Any

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.arithmetic import literal, over
from phalanx.numpy.attached import with_methods
from phalanx.numpy.logic import isfinite
from phalanx.numpy.promotion import ArrayLike, arrays, convert, inexact, inexact_pair, no_out
from phalanx.ops.bessel import bessel_i
from phalanx.ops.hypot import hypot as _hypot
from phalanx.ops.turns import sinc as _sinc

# ---- exponentials and logarithms ----------------------------------------------------------


@one_program
def exp(x: ArrayLike, /) -> Array:
    """The exponential e^x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.exp(0.0))
    1.0
    """
    return ops.exp(inexact("exp", x))


@one_program
def exp2(x: ArrayLike, /) -> Array:
    """The power 2^x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.exp2(3.0))
    8.0
    """
    return ops.exp2(inexact("exp2", x))


@one_program
def expm1(x: ArrayLike, /) -> Array:
    """The exponential e^x minus 1, also precise near x = 0, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.expm1(0.0))
    0.0
    """
    return ops.expm1(inexact("expm1", x))


@one_program
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.log(1.0))
    0.0
    """
    return ops.log(inexact("log", x))


@one_program
def log1p(x: ArrayLike, /) -> Array:
    """The natural logarithm of 1 + x, also precise near x = 0, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.log1p(0.0))
    0.0
    """
    return ops.log1p(inexact("log1p", x))


@one_program
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.log2(8.0))
    3.0
    """
    return _log(inexact("log2", x), 2)


@one_program
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> round(float(jnp.log10(1000.0)), 5)
    3.0
    """
    return _log(inexact("log10", x), 10)


def _log(x: Any, base: int) -> Any:
    """Of complex numbers part by part: a product with what is infinite would be NaN."""
    out = ops.log(x)
    if not dtypes.is_complex(out.dtype):
        return over(out, math.log(base))
    return ops.complex(over(ops.real(out), math.log(base)), over(ops.imag(out), math.log(base)))


@with_methods(-float("inf"))
@one_program
def logaddexp(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The logarithm of a sum of exponentials, log(e^x + e^y), elementwise, without overflow.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> round(float(jnp.logaddexp(1000.0, 1000.0)), 3)
    1000.693
    """
    no_out("logaddexp", out, where)
    return _logaddexp(*inexact_pair("logaddexp", x, y))


@with_methods(-float("inf"))
@one_program
def logaddexp2(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The logarithm of a sum of powers of two, log2(2^x + 2^y), elementwise, without overflow.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> round(float(jnp.logaddexp2(1000.0, 1000.0)), 3)
    1001.0
    """
    no_out("logaddexp2", out, where)
    x, y = arrays("logaddexp2", x, y, to=dtypes.to_inexact)
    unit = literal(x, math.log(2))
    return ops.div(_logaddexp(ops.mul(x, unit), ops.mul(y, unit)), unit)


def _logaddexp(x: Any, y: Any) -> Any:
    if typeof(x).dtype not in COMPLEXES:
        return ops.logaddexp(x, y)
    x, y = arrays("logaddexp", x, y)
    # The derivatives are the shares of e^x and e^y in the sum: those of max play no part.
    top = ops.stop_gradient(ops.max(ops.real(x), ops.real(y)))
    top = convert(ops.select(ops.is_finite(top), top, literal(top, 0)), x.aval.dtype)
    return ops.add(ops.log(ops.add(ops.exp(ops.sub(x, top)), ops.exp(ops.sub(y, top)))), top)


# ---- trigonometric functions --------------------------------------------------------------


@one_program
def sin(x: ArrayLike, /) -> Array:
    """The sine of x in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.sin(0.0))
    0.0
    """
    return ops.sin(inexact("sin", x))


@one_program
def cos(x: ArrayLike, /) -> Array:
    """The cosine of x in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.cos(0.0))
    1.0
    """
    return ops.cos(inexact("cos", x))


@one_program
def tan(x: ArrayLike, /) -> Array:
    """The tangent of x in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.tan(0.0))
    0.0
    """
    return ops.tan(inexact("tan", x))


@one_program
def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [-π/2, π/2] whose sine is x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arcsin(0.0))
    0.0
    """
    return ops.asin(inexact("arcsin", x))


@one_program
def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, π] whose cosine is x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arccos(1.0))
    0.0
    """
    return ops.acos(inexact("arccos", x))


@one_program
def arctan(x: ArrayLike, /) -> Array:
    """The angle in [-π/2, π/2] whose tangent is x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arctan(0.0))
    0.0
    """
    return ops.atan(inexact("arctan", x))


@one_program
def arctan2(y: ArrayLike, x: ArrayLike, /) -> Array:
    """The angle in [-π, π] of the point (x, y), elementwise.

    Args:
        y: an array, or a number; the two broadcast.
        x: an array, or a number.

    Returns:
        An array of the shape to which the arguments broadcast; integers give float32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> round(float(jnp.arctan2(1.0, -1.0)), 4)
    2.3562
    """
    return ops.atan2(*inexact_pair("arctan2", y, x))


@one_program
def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The square root of x² + y², elementwise, without overflow.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        Real numbers of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> float(jnp.hypot(3.0, 4.0))
    5.0
    """
    x, y = (
        ops.abs(v) if v.dtype in COMPLEXES else v
        for v in arrays("hypot", x, y, to=dtypes.to_inexact)
    )
    return _hypot(x, y)


@one_program
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    Raises:
        TypeError: x is complex.

    >>> float(jnp.i0(0.0))
    1.0
    """
    x = inexact("i0", x)
    if x.dtype in COMPLEXES:
        raise TypeError(f"i0: a real operand is needed, got {x.aval}")
    return bessel_i(x, order=0)


@one_program
def sinc(x: ArrayLike, /) -> Array:
    """The normalized sinc function sin(πx) / (πx), elementwise, and 1 at 0.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.sinc(0.0))
    1.0
    """
    x = inexact("sinc", x)
    return _complex_sinc(x) if x.dtype in COMPLEXES else _sinc(x)


def _complex_sinc(x: Array) -> Array:
    """By the sine; near 0, where all derivatives of the quotient cancel, by the power series."""
    angle = ops.mul(x, literal(x, math.pi))
    small = ops.lt(ops.abs(angle), dtypes.scalar(0.5, dtypes.to_real(x.aval.dtype)))
    near, far = (ops.select(small, angle, literal(x, 0)), ops.select(small, literal(x, 1), angle))
    square = ops.mul(near, near)
    series: Any = literal(x, 0)
    for n in reversed(range(9)):
        term = literal(x, (-1) ** n / math.factorial(2 * n + 1))
        series = ops.add(ops.mul(square, series), term)
    wave = ops.sin(ops.select(isfinite(far), far, literal(x, 0)))
    return ops.select(small, series, ops.div(wave, far))


@one_program
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> round(float(jnp.deg2rad(180.0)), 4)
    3.1416
    """
    x = inexact("deg2rad", x)
    return ops.mul(x, literal(x, math.pi / 180))


@one_program
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians in degrees, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> round(float(jnp.rad2deg(jnp.pi)), 4)
    180.0
    """
    x = inexact("rad2deg", x)
    return ops.mul(x, literal(x, 180 / math.pi))


radians = deg2rad
degrees = rad2deg


# ---- hyperbolic functions -----------------------------------------------------------------


@one_program
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.sinh(0.0))
    0.0
    """
    return ops.sinh(inexact("sinh", x))


@one_program
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.cosh(0.0))
    1.0
    """
    return ops.cosh(inexact("cosh", x))


@one_program
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.tanh(0.0))
    0.0
    """
    return ops.tanh(inexact("tanh", x))


@one_program
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic sine, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arcsinh(0.0))
    0.0
    """
    return ops.asinh(inexact("arcsinh", x))


@one_program
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic cosine, not negative, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arccosh(1.0))
    0.0
    """
    return ops.acosh(inexact("arccosh", x))


@one_program
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic tangent, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arctanh(0.0))
    0.0
    """
    return ops.atanh(inexact("arctanh", x))


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh
