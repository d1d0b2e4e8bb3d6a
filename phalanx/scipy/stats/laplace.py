"""The Laplace distribution."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "logpdf", "pdf"]

family = Family()


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5):.4f}"
    '-1.1931'
    """
    return -ops.abs(x) - math.log(2)


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """exp(-|x|) / 2.

    Args:
        x: where: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5):.4f}"
    '0.3033'
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is not greater than x.

    Args:
        x: where: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(0.5):.4f}"
    '0.6967'
    """
    tail = 0.5 * ops.exp(-ops.abs(x))
    return where(x < 0, tail, 1 - tail)
