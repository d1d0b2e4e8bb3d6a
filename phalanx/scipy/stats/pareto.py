"""The Pareto distribution."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

family = Family(low=1, inner=2, valid=lambda b: b > 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        b: the exponent of the tail, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(1.5, 2.0):.4f}"
    '-0.5232'
    """
    return ops.log(b) - (b + 1) * ops.log(x)


@one_program
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """b / xᵇ⁺¹ for x ≥ 1.

    Args:
        x: where: an array, or a number.
        b: the exponent of the tail, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(1.5, 2.0):.4f}"
    '0.5926'
    """
    return ops.exp(logpdf(x, b, loc, scale))


@family.distribution
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is not greater than x.

    Args:
        x: where: an array, or a number.
        b: the exponent of the tail, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(1.5, 2.0):.4f}"
    '0.5556'
    """
    return -ops.expm1(-b * ops.log(x))


@family.log_distribution
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``.

    Args:
        x: where: an array, or a number.
        b: the exponent of the tail, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logcdf(1.5, 2.0):.4f}"
    '-0.5878'
    """
    return log1mexp(-b * ops.log(x))


@family.survival
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than x.

    Args:
        x: where: an array, or a number.
        b: the exponent of the tail, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{sf(1.5, 2.0):.4f}"
    '0.4444'
    """
    return ops.exp(-b * ops.log(x))


@family.log_survival
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``.

    Args:
        x: where: an array, or a number.
        b: the exponent of the tail, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logsf(1.5, 2.0):.4f}"
    '-0.8109'
    """
    return -b * ops.log(x)


@family.quantile
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number whose ``cdf`` is q.

    Args:
        q: probabilities, from 0 to 1: an array, or a number.
        b: the exponent of the tail, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{ppf(0.3, 2.0):.4f}"
    '1.1952'
    """
    return ops.exp(-ops.log1p(-q) / b)
