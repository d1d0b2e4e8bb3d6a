"""Elementwise rounding."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base.dtypes import COMPLEXES, INEXACT
from phalanx.base.lengths import integer
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import integer_floor_divide
from phalanx.numpy.promotion import (
    ArrayLike,
    convert,
    inexact,
    literal,
    number_array,
    over,
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
