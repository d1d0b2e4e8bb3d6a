"""The Cauchy distribution."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.numpy.transcendental import arctan2
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1p_square, log_of

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

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
    '-1.3679'
    """
    return -math.log(math.pi) - log1p_square(x)


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 / (π (1 + x²)).

    Args:
        x: where: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5):.4f}"
    '0.2546'
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
    '0.6476'
    """
    return _below(x)


@family.log_distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``.

    Args:
        x: where: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logcdf(0.5):.4f}"
    '-0.4345'
    """
    return log_of(_below(x), _below(-x))


@family.survival
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than x.

    Args:
        x: where: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{sf(0.5):.4f}"
    '0.3524'
    """
    return _below(-x)


@family.log_survival
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``.

    Args:
        x: where: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logsf(0.5):.4f}"
    '-1.0429'
    """
    return log_of(_below(-x), _below(x))


@family.quantile
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number whose ``cdf`` is q.

    Args:
        q: probabilities, from 0 to 1: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{ppf(0.3):.4f}"
    '-0.7265'
    """
    return _at(q)


@family.upper_quantile
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number whose ``sf`` is q.

    Args:
        q: probabilities, from 0 to 1: an array, or a number.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{isf(0.3):.4f}"
    '0.7265'
    """
    return -_at(q)


def _below(x: Array) -> Array:
    return arctan2(1, -x) / math.pi


def _at(q: Array) -> Array:
    """The number of that quantile, by the nearer end."""
    tail = where(q < 0.5, q, 1 - q)
    size = 1 / ops.tan(math.pi * tail)
    return where(q < 0.5, -size, size)
