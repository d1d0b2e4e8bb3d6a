"""Elementwise exponentials and logarithms.

Integers and booleans are converted to the default floating-point dtype.
"""

from __future__ import annotations

import math
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    convert,
    inexact,
    inexact_pair,
    literal,
    no_out,
    over,
)
from phalanx.numpy.ufunc_methods import with_methods


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
    """Complex numbers part by part: a product with an infinity would be NaN."""
    out = ops.log(x)
    if not dtypes.is_complex(out.dtype):
        return over(out, math.log(base))
    return ops.complex(over(ops.real(out), math.log(base)), over(ops.imag(out), math.log(base)))


@with_methods(-float("inf"))
@one_program
def logaddexp(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The logarithm of a sum of exponentials, log(e^x + e^y), elementwise, without overflow.

    Args:
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape; integers give float32.

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
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape; integers give float32.

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
