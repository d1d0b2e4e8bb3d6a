"""The beta distribution."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.ops.incomplete import betainc, betaln
from phalanx.scipy.special import xlog1py, xlogy
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log_of

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

family = Family(
    low=0, high=1, valid=lambda a, b: (a > 0) & (b > 0), typical=(1, 1)
)


@family.log_density
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        a: the first shape parameter, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, 2.0, 3.0):.4f}"
    '0.4055'
    """
    return xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b)


@one_program
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) for 0 ≤ x ≤ 1.

    Args:
        x: where: an array, or a number.
        a: the first shape parameter, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, 2.0, 3.0):.4f}"
    '1.5000'
    """
    return ops.exp(logpdf(x, a, b, loc, scale))


@family.distribution
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The probability of what is not greater than x.

    Args:
        x: where: an array, or a number.
        a: the first shape parameter, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(0.5, 2.0, 3.0):.4f}"
    '0.6875'
    """
    return betainc(a, b, x)


@family.log_distribution
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of ``cdf``.

    Args:
        x: where: an array, or a number.
        a: the first shape parameter, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logcdf(0.5, 2.0, 3.0):.4f}"
    '-0.3747'
    """
    return log_of(betainc(a, b, x), _above(a, b, x))


@family.survival
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than x.

    Args:
        x: where: an array, or a number.
        a: the first shape parameter, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{sf(0.5, 2.0, 3.0):.4f}"
    '0.3125'
    """
    return _above(a, b, x)


@family.log_survival
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of ``sf``.

    Args:
        x: where: an array, or a number.
        a: the first shape parameter, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logsf(0.5, 2.0, 3.0):.4f}"
    '-1.1632'
    """
    return log_of(_above(a, b, x), betainc(a, b, x))


def _above(a: Array, b: Array, x: Array) -> Array:
    """1 - I_x(a, b), exact where it is small, and where x is."""
    below = betainc(a, b, x)
    return where(below < 0.5, 1 - below, betainc(b, a, 1 - x))
