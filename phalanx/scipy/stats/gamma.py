"""The gamma distribution."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.ops.incomplete import igamma
from phalanx.scipy.special import xlogy
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log_of

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

family = Family(low=0, valid=lambda a: a > 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        a: the shape parameter, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, 2.0):.4f}"
    '-1.1931'
    """
    return xlogy(a - 1, x) - x - ops.lgamma(a)


@one_program
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """xᵃ⁻¹ e⁻ˣ / Γ(a) for x ≥ 0.

    Args:
        x: where: an array, or a number.
        a: the shape parameter, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, 2.0):.4f}"
    '0.3033'
    """
    return ops.exp(logpdf(x, a, loc, scale))


@family.distribution
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is not greater than x.

    Args:
        x: where: an array, or a number.
        a: the shape parameter, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(0.5, 2.0):.4f}"
    '0.0902'
    """
    return igamma(a, x, upper=False)


@family.log_distribution
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``.

    Args:
        x: where: an array, or a number.
        a: the shape parameter, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logcdf(0.5, 2.0):.4f}"
    '-2.4057'
    """
    return log_of(igamma(a, x, upper=False), igamma(a, x, upper=True))


@family.survival
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than x.

    Args:
        x: where: an array, or a number.
        a: the shape parameter, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{sf(0.5, 2.0):.4f}"
    '0.9098'
    """
    return igamma(a, x, upper=True)


@family.log_survival
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``.

    Args:
        x: where: an array, or a number.
        a: the shape parameter, positive.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logsf(0.5, 2.0):.4f}"
    '-0.0945'
    """
    return log_of(igamma(a, x, upper=True), igamma(a, x, upper=False))
