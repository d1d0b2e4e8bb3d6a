"""Functions of one array, element by element: out[i] = f(x[i])."""

from __future__ import annotations

import enum
from operator import index
from typing import Any

from phalanx.base import dtypes
from phalanx.core.types import Array, typeof
from phalanx.lax.operands import accept
from phalanx.ops import basis, bits, elementwise, special
from phalanx.ops import complex as parts
from phalanx.ops.basis import convert


class RoundingMethod(enum.IntEnum):
    """Which of two equally near integers ``round`` chooses."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# ---- arithmetic and rounding ----------------------------------------------------------------


def abs(x: Any) -> Array:
    """|x|; of a complex number, its real magnitude.

    >>> lax.abs(np.float32([-1.5, 2.0]))
    OUT
    """
    return elementwise.abs(accept("abs", x))


def neg(x: Any) -> Array:
    """-x.

    >>> lax.neg(np.float32([-1.5, 2.0]))
    OUT
    """
    return basis.neg(accept("neg", x))


def sign(x: Any) -> Array:
    """x / |x|, and 0 at 0.

    >>> lax.sign(np.float32([-1.5, 0.0, 2.0]))
    OUT
    """
    return elementwise.sign(accept("sign", x))


def square(x: Any) -> Array:
    """x².

    >>> lax.square(np.float32([-1.5, 2.0]))
    OUT
    """
    return elementwise.square(accept("square", x))


def reciprocal(x: Any) -> Array:
    """1 / x.

    >>> lax.reciprocal(np.float32([0.5, 4.0]))
    OUT
    """
    return elementwise.integer_pow(accept("reciprocal", x), y=-1)


def floor(x: Any) -> Array:
    """⌊x⌋, the greatest integer not above x.

    >>> lax.floor(np.float32([-1.5, 1.5]))
    OUT
    """
    return elementwise.floor(accept("floor", x))


def ceil(x: Any) -> Array:
    """⌈x⌉, the least integer not below x.

    >>> lax.ceil(np.float32([-1.5, 1.5]))
    OUT
    """
    return elementwise.ceil(accept("ceil", x))


def round(x: Any, rounding_method: RoundingMethod | int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The integer nearest to x; ``rounding_method`` says which of two equally near ones.

    >>> lax.round(np.float32([0.5, 1.5, 2.4]))
    OUT
    >>> lax.round(np.float32([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    OUT
    """
    even = RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN
    return elementwise.round(accept("round", x), mode="even" if even else "away")


def is_finite(x: Any) -> Array:
    """Whether x is neither infinite nor NaN.

    >>> lax.is_finite(np.float32([1.0, np.inf, np.nan]))
    OUT
    """
    return elementwise.is_finite(accept("is_finite", x))


# ---- powers and logarithms ------------------------------------------------------------------


def integer_pow(x: Any, y: int) -> Array:
    """xʸ for a Python integer y, by repeated multiplication.

    >>> lax.integer_pow(np.float32([2.0, 3.0]), 3)
    OUT
    """
    return elementwise.integer_pow(accept("integer_pow", x), y=index(y))


def sqrt(x: Any) -> Array:
    """√x.

    >>> lax.sqrt(np.float32([4.0, 9.0]))
    OUT
    """
    return elementwise.sqrt(accept("sqrt", x))


def rsqrt(x: Any) -> Array:
    """1 / √x.

    >>> lax.rsqrt(np.float32([4.0, 16.0]))
    OUT
    """
    return elementwise.rsqrt(accept("rsqrt", x))


def cbrt(x: Any) -> Array:
    """∛x, also of negative numbers.

    >>> lax.cbrt(np.float32([-8.0, 27.0]))
    OUT
    """
    return elementwise.cbrt(accept("cbrt", x))


def exp(x: Any) -> Array:
    """eˣ.

    >>> lax.exp(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.exp(accept("exp", x))


def exp2(x: Any) -> Array:
    """2ˣ.

    >>> lax.exp2(np.float32([0.0, 3.0]))
    OUT
    """
    return elementwise.exp2(accept("exp2", x))


def expm1(x: Any) -> Array:
    """eˣ - 1, accurate near 0.

    >>> lax.expm1(np.float32([0.0, 1e-6]))
    OUT
    """
    return elementwise.expm1(accept("expm1", x))


def log(x: Any) -> Array:
    """ln x.

    >>> lax.log(np.float32([1.0, 2.0]))
    OUT
    """
    return elementwise.log(accept("log", x))


def log1p(x: Any) -> Array:
    """ln(1 + x), accurate near 0.

    >>> lax.log1p(np.float32([0.0, 1e-6]))
    OUT
    """
    return elementwise.log1p(accept("log1p", x))


def logistic(x: Any) -> Array:
    """1 / (1 + e⁻ˣ).

    >>> lax.logistic(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.logistic(accept("logistic", x))


# ---- angles ---------------------------------------------------------------------------------


def sin(x: Any) -> Array:
    """sin x.

    >>> lax.sin(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.sin(accept("sin", x))


def cos(x: Any) -> Array:
    """cos x.

    >>> lax.cos(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.cos(accept("cos", x))


def tan(x: Any) -> Array:
    """tan x.

    >>> lax.tan(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.tan(accept("tan", x))


def asin(x: Any) -> Array:
    """arcsin x.

    >>> lax.asin(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.asin(accept("asin", x))


def acos(x: Any) -> Array:
    """arccos x.

    >>> lax.acos(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.acos(accept("acos", x))


def atan(x: Any) -> Array:
    """arctan x.

    >>> lax.atan(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.atan(accept("atan", x))


def sinh(x: Any) -> Array:
    """sinh x.

    >>> lax.sinh(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.sinh(accept("sinh", x))


def cosh(x: Any) -> Array:
    """cosh x.

    >>> lax.cosh(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.cosh(accept("cosh", x))


def tanh(x: Any) -> Array:
    """tanh x.

    >>> lax.tanh(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.tanh(accept("tanh", x))


def asinh(x: Any) -> Array:
    """arsinh x.

    >>> lax.asinh(np.float32([0.0, 1.0]))
    OUT
    """
    return elementwise.asinh(accept("asinh", x))


def acosh(x: Any) -> Array:
    """arcosh x.

    >>> lax.acosh(np.float32([1.0, 2.0]))
    OUT
    """
    return elementwise.acosh(accept("acosh", x))


def atanh(x: Any) -> Array:
    """artanh x.

    >>> lax.atanh(np.float32([0.0, 0.5]))
    OUT
    """
    return elementwise.atanh(accept("atanh", x))


# ---- special functions ----------------------------------------------------------------------


def erf(x: Any) -> Array:
    """The error function, 2/√π times the integral of exp(-t²) from 0 to x.

    >>> lax.erf(np.float32([0.0, 1.0]))
    OUT
    """
    return special.erf(accept("erf", x))


def erfc(x: Any) -> Array:
    """1 - erf x, accurate for large x.

    >>> lax.erfc(np.float32([0.0, 1.0]))
    OUT
    """
    return special.erfc(accept("erfc", x))


def erf_inv(x: Any) -> Array:
    """The y with erf y = x.

    >>> lax.erf_inv(np.float32([0.0, 0.5]))
    OUT
    """
    return special.erf_inv(accept("erf_inv", x))


def lgamma(x: Any) -> Array:
    """ln |Γ(x)|.

    >>> lax.lgamma(np.float32([1.0, 5.0]))
    OUT
    """
    return special.lgamma(accept("lgamma", x))


def digamma(x: Any) -> Array:
    """The derivative of ln Γ(x).

    >>> lax.digamma(np.float32([1.0, 5.0]))
    OUT
    """
    return special.digamma(accept("digamma", x))


# ---- parts of complex numbers ---------------------------------------------------------------


def real(x: Any) -> Array:
    """The real part of a complex number.

    >>> lax.real(np.complex64([1 + 2j]))
    OUT
    """
    return parts.real(accept("real", x))


def imag(x: Any) -> Array:
    """The imaginary part of a complex number.

    >>> lax.imag(np.complex64([1 + 2j]))
    OUT
    """
    return parts.imag(accept("imag", x))


def conj(x: Any) -> Array:
    """The complex conjugate; of a real number, that number as a complex one.

    >>> lax.conj(np.complex64([1 + 2j]))
    OUT
    """
    x = accept("conj", x)
    if not dtypes.is_complex(typeof(x).dtype):
        x = convert(x, dtype=dtypes.to_complex(typeof(x).dtype), weak=False)
    return parts.conj(x)


# ---- bits -----------------------------------------------------------------------------------


def bitwise_not(x: Any) -> Array:
    """¬x, bit by bit, of integers and booleans.

    >>> lax.bitwise_not(np.int32([0, 5]))
    OUT
    """
    return bits.not_(accept("bitwise_not", x))


def population_count(x: Any) -> Array:
    """How many bits of an integer are 1.

    >>> lax.population_count(np.int32([0, 5, 7]))
    OUT
    """
    return bits.population_count(accept("population_count", x))


def clz(x: Any) -> Array:
    """How many bits of an integer are 0 before the first 1.

    >>> lax.clz(np.int32([1, 5]))
    OUT
    """
    return bits.clz(accept("clz", x))
