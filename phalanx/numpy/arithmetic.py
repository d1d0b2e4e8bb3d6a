"""Elementwise arithmetic: sums, products, quotients, powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.dtypes import COMPLEXES, FLOATS, INEXACT, is_unsigned, is_weak
from phalanx.base.numpy_kinds import GENERIC
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.lax.loops import while_loop
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    convert,
    inexact,
    inexact_pair,
    is_python_scalar,
    kind_of,
    literal,
    no_out,
    number_array,
    pair,
)
from phalanx.numpy.ufunc_methods import with_methods
from phalanx.primitives.elementwise import integer_power

# ---- sums, differences, products ------------------------------------------------------------


@with_methods(0)
@one_program
def add(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The sum x + y, elementwise, with broadcasting; of booleans, x or y.

    Args:
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.add(jnp.arange(3), 10))
    [10 11 12]
    """
    no_out("add", out, where)
    return ops.add(*pair("add", x, y))


@with_methods()
@one_program
def subtract(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The difference x - y, elementwise, with broadcasting.

    Args:
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.subtract(jnp.arange(3), 1))
    [-1  0  1]
    """
    no_out("subtract", out, where)
    return ops.sub(*pair("subtract", x, y))


@with_methods(1)
@one_program
def multiply(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The product x y, elementwise, with broadcasting; of booleans, x and y.

    Args:
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.multiply(jnp.arange(3), 2))
    [0 2 4]
    """
    no_out("multiply", out, where)
    return ops.mul(*pair("multiply", x, y))


@with_methods(nin=1)
@one_program
def negative(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The negative -x, elementwise.

    Args:
        x: an array, or a number.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.negative(jnp.arange(3)))
    [ 0 -1 -2]
    """
    no_out("negative", out, where)
    return ops.neg(as_array("negative", x))


def positive(x: ArrayLike, /) -> Array:
    """The numbers themselves, +x.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.positive(jnp.arange(3)))
    [0 1 2]
    """
    return number_array("positive", x)


@one_program
def absolute(x: ArrayLike, /) -> Array:
    """The absolute value |x|, elementwise; of a complex number its modulus, which is real.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> print(jnp.absolute(jnp.array([-2, 0, 3])))
    [2 0 3]
    """
    x = as_array("absolute", x)
    return x if never_negative(x) else ops.abs(x)


abs = absolute


@one_program
def fabs(x: ArrayLike, /) -> Array:
    """The absolute value |x| of real numbers, elementwise, as floating-point numbers.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    Raises:
        TypeError: ``x`` is complex; see ``absolute``.

    >>> print(jnp.fabs(jnp.array([-2, 0, 3])))
    [2. 0. 3.]
    """
    x = inexact("fabs", x)
    if x.aval.dtype in COMPLEXES:
        raise TypeError(f"fabs: real numbers are needed, got {x.aval}; see absolute")
    return ops.abs(x)


@one_program
def sign(x: ArrayLike, /) -> Array:
    """The sign, elementwise: -1, 0 or 1 of real numbers, z / |z| of complex ones.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.sign(jnp.array([-2.0, 0.0, 3.0])))
    [-1.  0.  1.]
    """
    x = as_array("sign", x)
    if is_unsigned(x.aval.dtype):
        return convert(ops.ne(x, literal(x, 0)), x.aval.dtype, x.aval.weak)
    return ops.sign(x)


def never_negative(x: Any) -> bool:
    dtype = typeof(x).dtype
    return dtype == np.bool_ or is_unsigned(dtype)


@one_program
def square(x: ArrayLike, /) -> Array:
    """The square x², elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape of ``x``, of its dtype; booleans give int32.

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

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> print(jnp.sqrt(jnp.array([0.0, 4.0, 9.0])))
    [0. 2. 3.]
    """
    return ops.sqrt(inexact("sqrt", x))


@one_program
def cbrt(x: ArrayLike, /) -> Array:
    """The real cube root, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(jnp.cbrt(jnp.array([-8.0, 27.0])).round(4))
    [-2.  3.]
    """
    return ops.cbrt(inexact("cbrt", x))


@one_program
def reciprocal(x: ArrayLike, /) -> Array:
    """The reciprocal 1 / x, elementwise, as floating-point numbers.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> print(jnp.reciprocal(jnp.array([2, 4])))
    [0.5  0.25]
    """
    x = inexact("reciprocal", x)
    return ops.div(literal(x, 1), x)


# ---- quotients and remainders ---------------------------------------------------------------


@one_program
def true_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The quotient x / y, elementwise, with broadcasting; integers give floating-point numbers.

    Args:
        x, y: arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape; integers give float32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.true_divide(jnp.arange(3), 2))
    [0.  0.5 1. ]
    """
    return ops.div(*inexact_pair("divide", x, y))


divide = true_divide


@one_program
def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The greatest integer not above x / y, elementwise, in the dtype of the operands.

    Args:
        x, y: real numbers, as arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape and their promoted dtype; booleans give int32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(jnp.floor_divide(jnp.array([7, -7]), 2))
    [ 3 -4]
    """
    return _floor_divide(*number_pair("floor_divide", x, y))


def _floor_divide(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    if dtype in COMPLEXES:
        raise TypeError("floor_divide: complex numbers have no order, so no floor")
    return _float_divmod(x, y)[0] if dtype in INEXACT else integer_floor_divide(x, y)


def convert_both(x: Any, y: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """Two operands, one of which may be a constant, in ``dtype``."""
    converted = [
        convert(v, dtype) if isinstance(v, Array) else dtypes.scalar(v, dtype) for v in (x, y)
    ]
    return converted[0], converted[1]


def integer_floor_divide(x: Any, y: Any) -> Any:
    quotient = ops.div(x, y)
    if is_unsigned(typeof(x).dtype):
        return quotient
    opposite = ops.ne(_sign(x), _sign(y))
    inexactly = ops.ne(ops.rem(x, y), literal(x, 0))
    down = ops.sub(quotient, literal(x, 1))
    return ops.select(ops.and_(opposite, inexactly), down, quotient)


def _sign(x: Any) -> Any:
    """The sign of an operand that may be a constant, which then stays one."""
    return literal(x, np.sign(x)) if isinstance(x, GENERIC) else ops.sign(x)


def _is_negative(x: Any) -> Any:
    """Whether an operand is below zero; a constant's answer is a constant."""
    return np.less(x, 0) if isinstance(x, GENERIC) else ops.lt(x, literal(x, 0))


@one_program
def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The remainder x - y floor(x / y), elementwise, with the sign of y; of integers by 0, 0.

    Args:
        x, y: real numbers, as arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape and their promoted dtype; booleans give int32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

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
    """The remainder x - y trunc(x / y), elementwise, with the sign of x; of integers by 0, 0.

    Args:
        x, y: real numbers, as arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape and their promoted dtype; booleans give int32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(jnp.fmod(jnp.array([7, -7]), 3))
    [ 1 -1]
    """
    return _truncated_remainder(*number_pair("fmod", x, y))


@one_program
def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """The quotient and the remainder, (floor_divide(x, y), remainder(x, y)), elementwise.

    Args:
        x, y: real numbers, as arrays, or numbers, that broadcast.

    Returns:
        Two arrays of the broadcast shape.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

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
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers, elementwise.

    Args:
        x1: integers, as an array, or a number; the two broadcast.
        x2: integers, as an array, or a number; the two broadcast.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.gcd(jnp.array([12, 18]), 8))
    [4 2]
    """
    return _gcd(*_integers("gcd", x1, x2))


@one_program
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers, elementwise.

    Args:
        x1: integers, as an array, or a number; the two broadcast.
        x2: integers, as an array, or a number; the two broadcast.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

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
    """The power x^y, elementwise, with broadcasting.

    An exponent that is a Python integer (or integral) multiplies repeatedly: exact for
    integers, and differentiable at zero and below. Integers wrap around; to a power that is
    negative they are 1 / x rounded towards 0.

    Args:
        x, y: arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape and their promoted dtype; booleans give int32.

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
        x = convert(x, *lattice.promote(kind_of(x), kind_of(y)))
    elif x.aval.dtype == np.bool_:
        x = convert(x, dtypes.default_int())
    return integer_power("power", x, int(y))


@one_program
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The power x^y, elementwise, in floating-point numbers.

    Args:
        x, y: arrays, or numbers, that broadcast.

    Returns:
        An array of the broadcast shape.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.float_power(jnp.array([2, 4]), -1))
    [0.5  0.25]
    """
    return ops.pow(*inexact_pair("float_power", x, y))


# ---- steps ----------------------------------------------------------------------------------


@one_program
def heaviside(x: ArrayLike, at_zero: ArrayLike, /) -> Array:
    """The unit step, elementwise: 0 where x < 0, ``at_zero`` where x = 0, 1 where x > 0.

    Args:
        x: real numbers, as an array, or a number.
        at_zero: the result where x is 0.

    Returns:
        An array of the broadcast shape.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5))
    [0.  0.5 1. ]
    """
    first = x
    x, y = arrays("heaviside", x, at_zero, to=dtypes.to_inexact)
    zero, one = literal(x, 0), literal(x, 1)
    out = ops.select(ops.lt(x, zero), zero, ops.select(ops.eq(x, zero), y, one))
    out = ops.select(ops.ne(x, x), x, out)
    return convert(out, out.aval.dtype, is_weak(first) and is_weak(at_zero))
