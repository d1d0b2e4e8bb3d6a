"""Special functions: the Bessel function i0, and sinc."""

from __future__ import annotations

import math
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.logic import isfinite
from phalanx.numpy.promotion import ArrayLike, inexact, literal
from phalanx.primitives.bessel import bessel_i
from phalanx.primitives.half_turns import sinc as _sinc


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
