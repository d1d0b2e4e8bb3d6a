"""The Cauchy distribution, wrapped around a circle."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["logpdf", "pdf"]

family = Family(
    low=0, high=2 * math.pi, valid=lambda c: (c > 0) & (c < 1), typical=(0.5,)
)


@family.log_density
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        c: how narrow it is, from 0 to 1.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, 0.5):.4f}"
    '-1.1378'
    """
    half, rest = ops.sin(x / 2), 1 - c
    size = rest * rest + 4 * c * half * half
    return ops.log(rest) + ops.log1p(c) - math.log(2 * math.pi) - ops.log(size)


@one_program
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """(1 - c²) / (2π (1 + c² - 2c cos x)) for 0 ≤ x ≤ 2π.

    Args:
        x: where: an array, or a number.
        c: how narrow it is, from 0 to 1.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, 0.5):.4f}"
    '0.3205'
    """
    return ops.exp(logpdf(x, c))
