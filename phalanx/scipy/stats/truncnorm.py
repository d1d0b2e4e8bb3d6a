"""The normal distribution between two bounds, which are in units of scale from loc."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.scipy.special import log_ndtr, ndtr
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _inner(a: Array, b: Array) -> Array:
    """A point between the bounds, which may be infinite."""
    low = where(a > -math.inf, a, where(b < math.inf, b, 1) - 2)
    high = where(b < math.inf, b, low + 2)
    return (low + high) / 2


def _log_mass(a: Array, b: Array) -> Array:
    """log(Φ(b) - Φ(a)): by the tails on the side where most of it lies, or around 0."""
    right = a > 0
    low, high = where(right, -b, a), where(right, -a, b)
    around = (low < 0) & (high > 0)
    u, v = where(around, -1, low), where(around, -0.5, high)
    unbounded = u == -math.inf
    lower = where(unbounded, -math.inf, log_ndtr(where(unbounded, v, u)))
    upper = log_ndtr(v)
    far = upper + log1mexp(lower - upper)
    outside = ndtr(where(around, low, -1)) + ndtr(-where(around, high, 1))
    return where(around, ops.log1p(-outside), far)

family = Family(
    low=lambda a, b: a,
    high=lambda a, b: b,
    inner=_inner,
    valid=lambda a, b: a < b,
    typical=(-1, 1),
)


@family.log_density
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        a: the lower end of the interval, of the standard distribution.
        b: the upper end, likewise.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, -1.0, 2.0):.4f}"
    '-0.8438'
    """
    return -0.5 * x * x - 0.5 * math.log(2 * math.pi) - _log_mass(a, b)


@one_program
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The density exp(-x²/2) / √(2π) over the probability of [a, b], for a ≤ x ≤ b.

    Args:
        x: where: an array, or a number.
        a: the lower end of the interval, of the standard distribution.
        b: the upper end, likewise.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, -1.0, 2.0):.4f}"
    '0.4301'
    """
    return ops.exp(logpdf(x, a, b, loc, scale))


@family.distribution
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The probability of what is not greater than x.

    Args:
        x: where: an array, or a number.
        a: the lower end of the interval, of the standard distribution.
        b: the upper end, likewise.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(0.5, -1.0, 2.0):.4f}"
    '0.6509'
    """
    return ops.exp(_log_mass(a, x) - _log_mass(a, b))


@family.log_distribution
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of ``cdf``.

    Args:
        x: where: an array, or a number.
        a: the lower end of the interval, of the standard distribution.
        b: the upper end, likewise.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logcdf(0.5, -1.0, 2.0):.4f}"
    '-0.4294'
    """
    return _log_mass(a, x) - _log_mass(a, b)


@family.survival
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than x.

    Args:
        x: where: an array, or a number.
        a: the lower end of the interval, of the standard distribution.
        b: the upper end, likewise.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{sf(0.5, -1.0, 2.0):.4f}"
    '0.3491'
    """
    return ops.exp(_log_mass(x, b) - _log_mass(a, b))


@family.log_survival
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of ``sf``.

    Args:
        x: where: an array, or a number.
        a: the lower end of the interval, of the standard distribution.
        b: the upper end, likewise.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logsf(0.5, -1.0, 2.0):.4f}"
    '-1.0523'
    """
    return _log_mass(x, b) - _log_mass(a, b)
