"""Elementwise arithmetic: sums, products, quotients, powers, extremes, rounding."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, FLOATS, INEXACT, is_unsigned
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.lax.loops import while_loop
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    broadcast,
    convert,
    inexact,
    inexact_pair,
    is_python_scalar,
    kind_of,
    no_out,
    number_array,
    pair,
)


def literal(x: Any, value: Any) -> np.generic:
    """The constant ``value`` in the dtype of ``x``."""
    return dtypes.scalar(value, typeof(x).dtype)


def over(x: Any, value: Any) -> Any:
    """x / value for a constant, rounded once.

    Where a compiler sees the constant, it multiplies by its inverse, which is rounded, too: then
    9 / 10 is not 0.9, and whoever counts on the last digit gets another one from ``jit``. So it
    sees what may be another number, for all that it knows.
    """
    return ops.div(x, ops.select(ops.ne(x, x), ops.stop_gradient(x), literal(x, value)))


# ---- sums, differences, products ------------------------------------------------------------


@one_program
def add(
    x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None
) -> Array:
    """x + y, elementwise, with broadcasting; of booleans, x or y.

    >>> print(jnp.add(jnp.arange(3), 10))
    [10 11 12]
    """
    no_out("add", out, where)
    return ops.add(*pair("add", x, y))


@one_program
def subtract(
    x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None
) -> Array:
    """x - y, elementwise, with broadcasting.

    >>> print(jnp.subtract(jnp.arange(3), 1))
    [-1  0  1]
    """
    no_out("subtract", out, where)
    return ops.sub(*pair("subtract", x, y))


@one_program
def multiply(
    x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None
) -> Array:
    """x y, elementwise, with broadcasting; of booleans, x and y.

    >>> print(jnp.multiply(jnp.arange(3), 2))
    [0 2 4]
    """
    no_out("multiply", out, where)
    return ops.mul(*pair("multiply", x, y))


@one_program
def negative(
    x: ArrayLike, /, *, out: None = None, where: None = None
) -> Array:
    """-x, elementwise.

    >>> print(jnp.negative(jnp.arange(3)))
    [ 0 -1 -2]
    """
    no_out("negative", out, where)
    return ops.neg(as_array("negative", x))


def positive(x: ArrayLike, /) -> Array:
    """x itself, elementwise.

    >>> print(jnp.positive(jnp.arange(3)))
    [0 1 2]
    """
    return number_array("positive", x)


@one_program
def absolute(x: ArrayLike, /) -> Array:
    """|x|, elementwise; of a complex number its modulus, which is real.

    >>> print(jnp.absolute(jnp.array([-2, 0, 3])))
    [2 0 3]
    """
    x = as_array("absolute", x)
    return x if _never_negative(x) else ops.abs(x)


abs = absolute


@one_program
def fabs(x: ArrayLike, /) -> Array:
    """|x| of real numbers, elementwise, as floating-point numbers.

    >>> print(jnp.fabs(jnp.array([-2, 0, 3])))
    [2. 0. 3.]
    """
    x = inexact("fabs", x)
    if x.aval.dtype in COMPLEXES:
        raise TypeError(f"fabs: real numbers are needed, got {x.aval}; see absolute")
    return ops.abs(x)


@one_program
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 as x is negative, zero or positive, elementwise; z / |z| of complex numbers.

    >>> print(jnp.sign(jnp.array([-2.0, 0.0, 3.0])))
    [-1.  0.  1.]
    """
    x = as_array("sign", x)
    if is_unsigned(x.aval.dtype):
        return convert(ops.ne(x, literal(x, 0)), x.aval.dtype, x.aval.weak)
    return ops.sign(x)


def _never_negative(x: Any) -> bool:
    dtype = typeof(x).dtype
    return dtype == np.bool_ or is_unsigned(dtype)


@one_program
def square(x: ArrayLike, /) -> Array:
    """x², elementwise.

    >>> print(jnp.square(jnp.arange(4)))
    [0 1 4 9]
    """
    x = as_array("square", x)
    if x.aval.dtype == np.bool_:
        x = convert(x, dtypes.default_int())
    return ops.square(x)


@one_program
def sqrt(x: ArrayLike, /) -> Array:
    """The square root, elementwise; of a negative real number nan.

    >>> print(jnp.sqrt(jnp.array([0.0, 4.0, 9.0])))
    [0. 2. 3.]
    """
    return ops.sqrt(inexact("sqrt", x))


@one_program
def cbrt(x: ArrayLike, /) -> Array:
    """The real cube root, elementwise.

    >>> print(jnp.cbrt(jnp.array([-8.0, 27.0])).round(4))
    [-2.  3.]
    """
    return ops.cbrt(inexact("cbrt", x))


@one_program
def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x, elementwise, as floating-point numbers.

    >>> print(jnp.reciprocal(jnp.array([2, 4])))
    [0.5  0.25]
    """
    x = inexact("reciprocal", x)
    return ops.div(literal(x, 1), x)


# ---- quotients and remainders ---------------------------------------------------------------


@one_program
def true_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x / y, elementwise, with broadcasting; integers give floating-point numbers.

    >>> print(jnp.true_divide(jnp.arange(3), 2))
    [0.  0.5 1. ]
    """
    return ops.div(*inexact_pair("divide", x, y))


divide = true_divide


@one_program
def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The greatest integer not above x / y, elementwise, in the dtype of the operands.

    >>> print(jnp.floor_divide(jnp.array([7, -7]), 2))
    [ 3 -4]
    """
    return _floor_divide(*number_pair("floor_divide", x, y))


def _floor_divide(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    if dtype in COMPLEXES:
        raise TypeError("floor_divide: complex numbers have no order, so no floor")
    return _float_divmod(x, y)[0] if dtype in INEXACT else _integer_floor_divide(x, y)


def convert_both(x: Any, y: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """Two operands, one of which may be a constant, in ``dtype``."""
    made = [convert(v, dtype) if isinstance(v, Array) else dtypes.scalar(v, dtype) for v in (x, y)]
    return made[0], made[1]


def _integer_floor_divide(x: Any, y: Any) -> Any:
    quotient = ops.div(x, y)
    if is_unsigned(typeof(x).dtype):
        return quotient
    opposite = ops.ne(_sign(x), _sign(y))
    inexactly = ops.ne(ops.rem(x, y), literal(x, 0))
    down = ops.sub(quotient, literal(x, 1))
    return ops.select(ops.and_(opposite, inexactly), down, quotient)


def _sign(x: Any) -> Any:
    """The sign of an operand that may be a constant, which then stays one."""
    return literal(x, np.sign(x)) if isinstance(x, np.generic) else ops.sign(x)


def _is_negative(x: Any) -> Any:
    """Whether an operand is below zero; a constant's answer is a constant."""
    return np.less(x, 0) if isinstance(x, np.generic) else ops.lt(x, literal(x, 0))


@one_program
def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x - y floor(x / y), elementwise: the remainder with the sign of y; of integers by 0, 0.

    >>> print(jnp.remainder(jnp.array([7, -7]), 3))
    [1 2]
    """
    return _remainder(*number_pair("remainder", x, y))


mod = remainder


def number_pair(who: str, x: Any, y: Any) -> tuple[Any, Any]:
    """A pair of numbers; bools are integers."""
    x, y = pair(who, x, y)
    return convert_both(x, y, dtypes.default_int()) if typeof(x).dtype == np.bool_ else (x, y)


def _remainder(x: Any, y: Any) -> Any:
    rest = _truncated_remainder(x, y)
    if is_unsigned(typeof(rest).dtype):
        return rest
    return _floored(rest, y)


def _floored(rest: Any, y: Any) -> Any:
    """The remainder with the sign of y, zeros too, of that with the sign of x."""
    floored = ops.select(_opposite(rest, y), ops.add(rest, y), rest)
    if typeof(rest).dtype not in FLOATS:
        return floored
    fixed = ops.stop_gradient(rest)  # what follows are zeros, with the derivative of the remainder
    below, above = ops.neg(ops.sub(fixed, rest)), ops.sub(rest, fixed)
    zero = ops.select(_negative_like(rest, y), below, above)
    return ops.select(ops.eq(rest, literal(rest, 0)), zero, floored)


def _negative_like(x: Any, y: Any) -> Any:
    """Whether y is below zero, in the shape of x: a constant is alike everywhere."""
    negative = _is_negative(y)
    return negative if isinstance(negative, Array) else ops.full(x.shape, negative, np.dtype(bool))


def _truncated_remainder(x: Any, y: Any) -> Any:
    """The remainder with the sign of x; of integers by 0, 0."""
    rest = ops.rem(x, y)
    if typeof(rest).dtype in INEXACT:
        return rest
    zero = literal(rest, 0)
    if not isinstance(y, np.generic):
        return ops.select(ops.eq(y, zero), zero, rest)
    return rest if y else ops.zeros_like(rest)


def _opposite(rest: Any, y: Any) -> Any:
    """Whether a remainder is not 0 and on the other side of 0 than y."""
    zero = literal(rest, 0)
    return ops.and_(ops.ne(ops.lt(rest, zero), _is_negative(y)), ops.ne(rest, zero))


@one_program
def fmod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x - y trunc(x / y), elementwise: the remainder with the sign of x; of integers by 0, 0.

    >>> print(jnp.fmod(jnp.array([7, -7]), 3))
    [ 1 -1]
    """
    return _truncated_remainder(*number_pair("fmod", x, y))


@one_program
def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """(floor_divide(x, y), remainder(x, y)), elementwise.

    >>> [int(v) for v in jnp.divmod(7, 3)]
    [2, 1]
    """
    x, y = number_pair("divmod", x, y)
    if typeof(x).dtype in FLOATS:
        return _float_divmod(x, y)
    return _floor_divide(x, y), _remainder(x, y)


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    rest = ops.rem(x, y)
    quotient = ops.round(ops.div(ops.sub(x, rest), y), mode="even")  # was one, but for rounding
    opposite = _opposite(rest, y)
    quotient = ops.select(opposite, ops.sub(quotient, literal(quotient, 1)), quotient)
    sign = ops.mul(_sign(x), _sign(y))
    zero = literal(quotient, 0)
    quotient = ops.select(ops.eq(quotient, zero), ops.mul(sign, zero), quotient)
    rest = _floored(rest, y)
    if isinstance(y, np.generic):
        return (quotient if y else ops.div(x, y)), rest
    return ops.select(ops.eq(y, literal(y, 0)), ops.div(x, y), quotient), rest


@one_program
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integral part of x, elementwise, both with the sign of x.

    >>> [float(v) for v in jnp.modf(-2.5)]
    [-0.5, -2.0]
    """
    no_out("modf", out)
    x = inexact("modf", x)
    whole = trunc(x)
    infinite = ops.eq(ops.abs(x), literal(x, np.inf))
    rest = ops.select(infinite, literal(x, 0), ops.sub(x, whole))
    return copysign(rest, x), whole


@one_program
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers, elementwise.

    >>> print(jnp.gcd(jnp.array([12, 18]), 8))
    [4 2]
    """
    return _gcd(*_integers("gcd", x1, x2))


@one_program
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers, elementwise.

    >>> print(jnp.lcm(jnp.array([4, 6]), 6))
    [12  6]
    """
    x, y = _integers("lcm", x1, x2)
    divisor = _gcd(x, y)
    safe = ops.select(ops.eq(divisor, literal(x, 0)), _ones(divisor), divisor)
    return ops.mul(absolute(x), absolute(ops.div(y, safe)))


def _integers(who: str, x: Any, y: Any) -> list[Any]:
    both = arrays(who, x, y)
    if not dtypes.is_integer(both[0].aval.dtype):
        raise TypeError(f"{who}: integers are needed, got {typeof(x)} and {typeof(y)}")
    return both


def _ones(x: Any) -> Any:
    kind = typeof(x)
    return convert(ops.full(kind.shape, 1, kind.dtype), kind.dtype, kind.weak)


def _gcd(x: Any, y: Any) -> Any:
    """Euclid's algorithm, until no element has a rest: at most 1.45 steps for each bit.

    It is a loop also for the compiler's sake, to which all steps as one expression are too much.
    """
    return absolute(while_loop(_has_rest, _divided, (absolute(x), absolute(y)))[0])


def _has_rest(pair: tuple[Any, Any]) -> Any:
    rest = pair[1]
    return ops.reduce_or(ops.ne(rest, literal(rest, 0)), dims=tuple(range(rest.ndim)))


def _divided(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    x, y = pair
    done = ops.eq(y, literal(y, 0))
    rest = ops.rem(x, ops.select(done, _ones(y), y))
    return ops.select(done, x, y), ops.select(done, y, rest)


# ---- powers ---------------------------------------------------------------------------------


def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y, elementwise, with broadcasting.

    An exponent that is a Python integer (or integral) multiplies repeatedly: exact for
    integers, and differentiable at zero and below. Integers wrap around; to a power that is
    negative they are 1 / x rounded towards 0.

    Raises:
        TypeError: integers with an exponent that is a negative Python integer.

    >>> print(jnp.power(jnp.arange(4), 2), jnp.power(2.0, -1.0))
    [0 1 4 9] 0.5
    """
    if is_python_scalar(y) and not isinstance(y, complex) and _integral(y):
        return _integer_power(x, y)
    return ops.pow(*number_pair("power", x, y))


pow = power
_MOST_UNROLLED = 1024  # about 20 products; beyond that one pow is as good


def _integral(y: Any) -> bool:
    return -_MOST_UNROLLED <= y <= _MOST_UNROLLED and y == int(y)


def _integer_power(x: Any, y: Any) -> Any:
    x = as_array("power", x)
    if isinstance(y, float):
        x = convert(x, *dtypes.promote(kind_of(x), kind_of(y)))
    elif x.aval.dtype == np.bool_:
        x = convert(x, dtypes.default_int())
    if y < 0 and x.aval.dtype not in INEXACT:
        raise TypeError(
            f"power: integers cannot be raised to the negative power {y}; make the base a "
            f"floating-point number, as in x.astype(float) ** {y}"
        )
    return ops.integer_pow(x, y=int(y))


@one_program
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y, elementwise, in floating-point numbers.

    >>> print(jnp.float_power(jnp.array([2, 4]), -1))
    [0.5  0.25]
    """
    return ops.pow(*inexact_pair("float_power", x, y))


# ---- extremes -------------------------------------------------------------------------------


@one_program
def maximum(
    x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None
) -> Array:
    """The larger of x and y, elementwise; nan where either is.

    >>> print(jnp.maximum(jnp.arange(3), 1))
    [1 1 2]
    """
    no_out("maximum", out, where)
    return ops.max(*pair("maximum", x, y))


@one_program
def minimum(
    x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None
) -> Array:
    """The smaller of x and y, elementwise; nan where either is.

    >>> print(jnp.minimum(jnp.arange(3), 1))
    [0 1 1]
    """
    no_out("minimum", out, where)
    return ops.min(*pair("minimum", x, y))


@one_program
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, elementwise; where one is nan, the other.

    >>> print(jnp.fmax(jnp.array([1.0, jnp.nan]), 0.0))
    [1. 0.]
    """
    return _ignoring_nan("fmax", ops.max, x1, x2)


@one_program
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, elementwise; where one is nan, the other.

    >>> print(jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0))
    [0. 0.]
    """
    return _ignoring_nan("fmin", ops.min, x1, x2)


def _ignoring_nan(who: str, best: Any, x: Any, y: Any) -> Any:
    x, y = arrays(who, x, y)
    if x.aval.dtype not in INEXACT:
        return best(x, y)
    return ops.select(ops.ne(x, x), y, ops.select(ops.ne(y, y), x, best(x, y)))


@one_program
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """x limited to the interval from ``min`` to ``max``, elementwise; None is no limit.

    Args:
        min: the lower limit; None for none.
        max: the upper limit; None for none.

    >>> print(jnp.clip(jnp.arange(6), 1, 4))
    [1 1 2 3 4 4]
    """
    out = number_array("clip", x)
    if min is not None:
        out = maximum(min, out)
    if max is not None:
        out = minimum(max, out)
    return out


# ---- rounding -------------------------------------------------------------------------------


@one_program
def floor(x: ArrayLike, /) -> Array:
    """The greatest integer not above x, elementwise, in the dtype of x.

    >>> print(jnp.floor(jnp.array([-1.5, 1.5])))
    [-2.  1.]
    """
    x = number_array("floor", x)
    return ops.floor(x) if x.aval.dtype in INEXACT else x


@one_program
def ceil(x: ArrayLike, /) -> Array:
    """The least integer not below x, elementwise, in the dtype of x.

    >>> print(jnp.ceil(jnp.array([-1.5, 1.5])))
    [-1.  2.]
    """
    x = number_array("ceil", x)
    return ops.ceil(x) if x.aval.dtype in INEXACT else x


@one_program
def trunc(x: ArrayLike) -> Array:
    """x without its fractional part, elementwise, in the dtype of x.

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

    >>> print(jnp.rint(jnp.array([0.5, 1.5, 2.5])))
    [0. 2. 2.]
    """
    return round(inexact("rint", x))


@one_program
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """a rounded to ``decimals`` decimal places, elementwise, halves to the even digit.

    A negative number of decimals rounds to tens, hundreds, ...

    Args:
        decimals: after how many decimal places; if negative, before the point.

    >>> print(jnp.round(jnp.array([1.25, 2.5])), jnp.round(jnp.array([15, 25]), -1))
    [1. 2.] [20 20]
    """
    x = number_array("round", a)
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
    down = _integer_floor_divide(x, step)
    rest = ops.sub(x, ops.mul(down, step))
    tie_up = ops.and_(ops.eq(rest, half), ops.ne(ops.rem(down, literal(x, 2)), literal(x, 0)))
    up = ops.or_(ops.gt(rest, half), tie_up)
    return ops.mul(ops.select(up, ops.add(down, literal(x, 1)), down), step)


# ---- the representation of floating-point numbers -------------------------------------------


@one_program
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign of x is minus, elementwise; minus zero counts.

    >>> print(jnp.signbit(jnp.array([-1.0, -0.0, 0.0])))
    [ True  True False]
    """
    number = as_array("signbit", x)
    dtype = number.dtype
    if dtype in COMPLEXES:
        raise TypeError(f"signbit: real numbers are needed, got {number.aval}")
    if dtype in INEXACT:
        number = ops.bitcast(number, dtype=np.dtype(f"int{8 * dtype.itemsize}"))
    if _never_negative(number):
        return ops.full(number.shape, False, np.dtype(bool))
    return ops.lt(number, literal(number, 0))


@one_program
def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """|x| with the sign of y, elementwise.

    >>> print(jnp.copysign(jnp.array([1.0, 2.0]), -0.0))
    [-1. -2.]
    """
    size, sign_of = arrays("copysign", x, y, to=dtypes.to_inexact)
    size = ops.abs(size)
    return ops.select(signbit(sign_of), ops.neg(size), size)


@one_program
def ldexp(x: ArrayLike, exponent: ArrayLike, /) -> Array:
    """x 2^exponent, elementwise, for exponents that are integers.

    Args:
        exponent: integers; broadcast with x.

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

    >>> bool(jnp.spacing(1.0) == jnp.finfo("float32").eps)
    True
    """
    values = ops.stop_gradient(inexact("spacing", x))
    type = values.aval
    if dtypes.is_complex(type.dtype):
        raise TypeError(f"spacing: real numbers are needed, got {type}")
    low, high = (ops.full(type.shape, end, type.dtype) for end in (-np.inf, np.inf))
    away = ops.select(ops.lt(values, literal(values, 0)), low, high)
    tiny = literal(values, float(dtypes.finfo(type.dtype).tiny))  # below it nothing is subtracted
    least = ops.nextafter(ops.full(type.shape, 0, type.dtype), away)
    gap = ops.sub(ops.nextafter(values, away), values)
    return ops.select(ops.lt(ops.abs(values), tiny), least, gap)


@one_program
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The floating-point number next to x in the direction of y, elementwise.

    >>> bool(jnp.nextafter(1.0, 2.0) > 1.0)
    True
    """
    return ops.nextafter(*inexact_pair("nextafter", x, y))
