"""Functions of one array, element by element: out[i] = f(x[i])."""

from __future__ import annotations

import math
from operator import index

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.choices import IntChoice
from phalanx.core.types import Array, ArrayLike, typeof
from phalanx.lax.accuracy import Accuracy, checked
from phalanx.lax.operands import one
from phalanx.primitives.elementwise import integer_power


class RoundingMethod(IntChoice):
    """Which of two equally near integers ``round`` chooses.

    >>> print(lax.round(jnp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN))
    [0. 2.]
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# ---- arithmetic and rounding ----------------------------------------------------------------


def abs(x: ArrayLike) -> Array:
    """The absolute value |x|; of a complex number, its real magnitude.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> lax.abs(np.float32([-1.5, 2.0]))
    Array([1.5, 2. ], dtype=float32)
    """
    return ops.abs(one("abs", x))


def neg(x: ArrayLike) -> Array:
    """The negative -x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.neg(np.float32([-1.5, 2.0]))
    Array([ 1.5, -2. ], dtype=float32)
    """
    return ops.neg(one("neg", x))


def sign(x: ArrayLike) -> Array:
    """The sign x / |x|, and 0 at 0.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.sign(np.float32([-1.5, 0.0, 2.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return ops.sign(one("sign", x))


def square(x: ArrayLike) -> Array:
    """The square x².

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.square(np.float32([-1.5, 2.0]))
    Array([2.25, 4.  ], dtype=float32)
    """
    return ops.square(one("square", x))


def reciprocal(x: ArrayLike) -> Array:
    """The reciprocal 1 / x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: integers.

    >>> lax.reciprocal(np.float32([0.5, 4.0]))
    Array([2.  , 0.25], dtype=float32)
    """
    return integer_power("reciprocal", one("reciprocal", x), -1)


def floor(x: ArrayLike) -> Array:
    """The greatest integer not above x, ⌊x⌋.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.floor(np.float32([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)
    """
    return ops.floor(one("floor", x))


def ceil(x: ArrayLike) -> Array:
    """The least integer not below x, ⌈x⌉.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.ceil(np.float32([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)
    """
    return ops.ceil(one("ceil", x))


def round(
    x: ArrayLike, rounding_method: RoundingMethod | int = RoundingMethod.AWAY_FROM_ZERO
) -> Array:
    """The integer nearest to x; ``rounding_method`` says which of two equally near ones.

    Args:
        x: real numbers, as an array, or a number.
        rounding_method: a ``lax.RoundingMethod``: halves away from zero, or to the even integer.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.round(np.float32([0.5, 1.5, 2.4]))
    Array([1., 2., 2.], dtype=float32)
    >>> lax.round(np.float32([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """
    even = RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN
    return ops.round(one("round", x), mode="even" if even else "away")


def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.is_finite(np.float32([1.0, np.inf, np.nan]))
    Array([ True, False, False], dtype=bool)
    """
    return ops.is_finite(one("is_finite", x))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """The nearest number with so many bits of exponent and mantissa, in the same dtype.

    Tangents are rounded alike.

    Args:
        operand: floating-point numbers.
        exponent_bits: from 1 to 64; larger numbers become infinite, smaller ones 0.
        mantissa_bits: from 0 to 64.

    Returns:
        An array of the shape and dtype of ``operand``.

    Raises:
        TypeError: the operand is no array of floating-point numbers.
        ValueError: there are fewer bits, or more.

    >>> lax.reduce_precision(np.float32([1.01, 1e10]), exponent_bits=5, mantissa_bits=2)
    Array([ 1., inf], dtype=float32)
    """
    bits = {"exponent_bits": index(exponent_bits), "mantissa_bits": index(mantissa_bits)}
    if not (1 <= exponent_bits <= 64 and 0 <= mantissa_bits <= 64):
        raise ValueError(
            "lax.reduce_precision: from 1 to 64 bits of exponent and from 0 to 64 of mantissa are "
            f"needed, got {exponent_bits} and {mantissa_bits}"
        )
    return ops.reduce_precision(one("reduce_precision", operand), **bits)


# ---- powers and logarithms ------------------------------------------------------------------


def integer_pow(x: ArrayLike, y: int) -> Array:
    """The power xʸ for a Python integer y, by repeated multiplication.

    Args:
        x: an array, or a number.
        y: the exponent, a Python integer.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: integers, to a negative power.

    >>> lax.integer_pow(np.float32([2.0, 3.0]), 3)
    Array([ 8., 27.], dtype=float32)
    """
    return integer_power("integer_pow", one("integer_pow", x), index(y))


def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The square root of x.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.sqrt(np.float32([4.0, 9.0]))
    Array([2., 3.], dtype=float32)
    """
    return ops.sqrt(checked("sqrt", x, accuracy))


def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The reciprocal of the square root, 1 / √x, elementwise.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.rsqrt(np.float32([4.0, 16.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return ops.rsqrt(checked("rsqrt", x, accuracy))


def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cube root ∛x, also of negative numbers.

    Args:
        x: real numbers, as an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.cbrt(np.float32([-8.0, 27.0]))
    Array([-2.,  3.], dtype=float32)
    """
    return ops.cbrt(checked("cbrt", x, accuracy))


def exp(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The exponential eˣ.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.exp(np.float32([0.0, 1.0]))
    Array([1.       , 2.7182817], dtype=float32)
    """
    return ops.exp(checked("exp", x, accuracy))


def exp2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The power 2ˣ.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.exp2(np.float32([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    return ops.exp2(checked("exp2", x, accuracy))


def expm1(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The exponential minus one, eˣ - 1, accurate near 0.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.expm1(np.float32([0.0, 1e-6]))
    Array([0.0000000e+00, 1.0000005e-06], dtype=float32)
    """
    return ops.expm1(checked("expm1", x, accuracy))


def log(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm ln x.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.log(np.float32([1.0, 2.0]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return ops.log(checked("log", x, accuracy))


def log2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The logarithm of x to the base 2.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.log2(np.float32([1.0, 8.0]))
    Array([0., 3.], dtype=float32)
    """
    return ops.div(ops.log(checked("log2", x, accuracy)), math.log(2))


def log1p(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm ln(1 + x), accurate near 0.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.log1p(np.float32([0.0, 1e-6]))
    Array([0.000000e+00, 9.999995e-07], dtype=float32)
    """
    return ops.log1p(checked("log1p", x, accuracy))


def logistic(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The logistic sigmoid 1 / (1 + e⁻ˣ).

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.logistic(np.float32([0.0, 1.0]))
    Array([0.5      , 0.7310586], dtype=float32)
    """
    return ops.logistic(checked("logistic", x, accuracy))


def one_minus_square(x: ArrayLike) -> Array:
    """1 - x², exact near ±1; its derivative is -2 x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.one_minus_square(np.float32([0.5, 2.0]))
    Array([ 0.75, -3.  ], dtype=float32)
    """
    return ops.one_minus_square(one("one_minus_square", x))


# ---- angles ---------------------------------------------------------------------------------


def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The sine of x in radians.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.sin(np.float32([0.0, 1.0]))
    Array([0.        , 0.84147096], dtype=float32)
    """
    return ops.sin(checked("sin", x, accuracy))


def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cosine of x in radians.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.cos(np.float32([0.0, 1.0]))
    Array([1.       , 0.5403023], dtype=float32)
    """
    return ops.cos(checked("cos", x, accuracy))


def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The tangent of x in radians.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.tan(np.float32([0.0, 1.0]))
    Array([0.       , 1.5574077], dtype=float32)
    """
    return ops.tan(checked("tan", x, accuracy))


def asin(x: ArrayLike) -> Array:
    """The arc sine of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.asin(np.float32([0.0, 1.0]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return ops.asin(one("asin", x))


def acos(x: ArrayLike) -> Array:
    """The arc cosine of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.acos(np.float32([0.0, 1.0]))
    Array([1.5707964, 0.       ], dtype=float32)
    """
    return ops.acos(one("acos", x))


def atan(x: ArrayLike) -> Array:
    """The arc tangent of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.atan(np.float32([0.0, 1.0]))
    Array([0.       , 0.7853981], dtype=float32)
    """
    return ops.atan(one("atan", x))


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.sinh(np.float32([0.0, 1.0]))
    Array([0.       , 1.1752012], dtype=float32)
    """
    return ops.sinh(one("sinh", x))


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.cosh(np.float32([0.0, 1.0]))
    Array([1.       , 1.5430806], dtype=float32)
    """
    return ops.cosh(one("cosh", x))


def tanh(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The hyperbolic tangent of x.

    Args:
        x: an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.tanh(np.float32([0.0, 1.0]))
    Array([0.       , 0.7615942], dtype=float32)
    """
    return ops.tanh(checked("tanh", x, accuracy))


def asinh(x: ArrayLike) -> Array:
    """The inverse hyperbolic sine of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.asinh(np.float32([0.0, 1.0]))
    Array([0.        , 0.88137364], dtype=float32)
    """
    return ops.asinh(one("asinh", x))


def acosh(x: ArrayLike) -> Array:
    """The inverse hyperbolic cosine of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.acosh(np.float32([1.0, 2.0]))
    Array([0.      , 1.316958], dtype=float32)
    """
    return ops.acosh(one("acosh", x))


def atanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangent of x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.atanh(np.float32([0.0, 0.5]))
    Array([0.        , 0.54930615], dtype=float32)
    """
    return ops.atanh(one("atanh", x))


# ---- special functions ----------------------------------------------------------------------


def erf(x: ArrayLike) -> Array:
    """The error function, 2/√π times the integral of exp(-t²) from 0 to x.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.erf(np.float32([0.0, 1.0]))
    Array([0.        , 0.84270084], dtype=float32)
    """
    return ops.erf(one("erf", x))


def erfc(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The complementary error function 1 - erf x, accurate for large x.

    Args:
        x: real numbers, as an array, or a number.
        accuracy: a ``lax.Tolerance`` or ``lax.AccuracyMode``; None for the compiler's own.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.erfc(np.float32([0.0, 1.0]))
    Array([1.        , 0.15729924], dtype=float32)
    """
    return ops.erfc(checked("erfc", x, accuracy))


def erf_inv(x: ArrayLike) -> Array:
    """The inverse error function: the y with erf y = x.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> lax.erf_inv(np.float32([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return ops.erf_inv(one("erf_inv", x))


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function, ln |Γ(x)|.

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> [f"{y:.4f}" for y in lax.lgamma(np.float32([0.5, 5.0]))]
    ['0.5724', '3.1781']
    """
    return ops.lgamma(one("lgamma", x))


def digamma(x: ArrayLike) -> Array:
    """The digamma function, the derivative of ln Γ(x).

    Args:
        x: real numbers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(lax.digamma(np.float32([1.0, 5.0])).round(5))
    [-0.57722  1.50612]
    """
    return ops.digamma(one("digamma", x))


# ---- parts of complex numbers ---------------------------------------------------------------


def real(x: ArrayLike) -> Array:
    """The real part of a complex number.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> lax.real(np.complex64([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return ops.real(one("real", x))


def imag(x: ArrayLike) -> Array:
    """The imaginary part of a complex number.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> lax.imag(np.complex64([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return ops.imag(one("imag", x))


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; of a real number, that number as a complex one.

    Args:
        x: an array, or a number.

    Returns:
        Complex numbers of the shape of ``x``.

    >>> lax.conj(np.complex64([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = one("conj", x)
    if not dtypes.is_complex(typeof(x).dtype):
        x = ops.convert(x, dtype=dtypes.to_complex(typeof(x).dtype), weak=typeof(x).weak)
    return ops.conj(x)


# ---- bits -----------------------------------------------------------------------------------


def bitwise_not(x: ArrayLike) -> Array:
    """The negation ¬x, bit by bit, of integers and booleans.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.bitwise_not(np.int32([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return ops.not_(one("bitwise_not", x))


def population_count(x: ArrayLike) -> Array:
    """How many bits of an integer are 1.

    Args:
        x: integers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.population_count(np.int32([0, 5, 7]))
    Array([0, 2, 3], dtype=int32)
    """
    return ops.population_count(one("population_count", x))


def clz(x: ArrayLike) -> Array:
    """How many bits of an integer are 0 before the first 1.

    Args:
        x: integers, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> lax.clz(np.int32([1, 5]))
    Array([31, 29], dtype=int32)
    """
    return ops.clz(one("clz", x))
