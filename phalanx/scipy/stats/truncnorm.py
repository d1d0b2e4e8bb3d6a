"""The normal distribution between two bounds, which are in units of scale from loc."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.searching import where
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
    """Logarithm of the probability density function of the normal distribution truncated to an
    interval.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the lower end of the interval, in units of ``scale`` from ``loc``; may be -inf.
        b: the upper end, likewise, greater than ``a``; may be inf.
        loc: the mean of the normal distribution before it is truncated.
        scale: its standard deviation, positive.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.truncnorm.logpdf(jnp.array([-0.5, 0.0, 1.5]), -1.0, 2.0).round(4))
    [-0.8438 -0.7188 -1.8438]
    """
    return -0.5 * x * x - 0.5 * math.log(2 * math.pi) - _log_mass(a, b)


@one_program
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Probability density function of the normal distribution truncated to an interval.

    In standard form, for ``loc=0`` and ``scale=1``, it is exp(-x²/2) / √(2π) over the probability
    of [a, b], for a ≤ x ≤ b. In general it is the standard one at ``(x - loc) / scale``, divided by
    ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the lower end of the interval, in units of ``scale`` from ``loc``; may be -inf.
        b: the upper end, likewise, greater than ``a``; may be inf.
        loc: the mean of the normal distribution before it is truncated.
        scale: its standard deviation, positive.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.truncnorm.pdf(jnp.array([-0.5, 0.0, 1.5]), -1.0, 2.0).round(4))
    [0.4301 0.4874 0.1582]
    """
    return ops.exp(logpdf(x, a, b, loc, scale))


@family.distribution
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Cumulative distribution function of the normal distribution truncated to an interval.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the lower end of the interval, in units of ``scale`` from ``loc``; may be -inf.
        b: the upper end, likewise, greater than ``a``; may be inf.
        loc: the mean of the normal distribution before it is truncated.
        scale: its standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.truncnorm.cdf(jnp.array([-0.5, 0.0, 1.5]), -1.0, 2.0).round(4))
    [0.1831 0.417  0.9462]
    """
    return ops.exp(_log_mass(a, x) - _log_mass(a, b))


@family.log_distribution
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of the cumulative distribution function of the normal distribution truncated to an
    interval.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the lower end of the interval, in units of ``scale`` from ``loc``; may be -inf.
        b: the upper end, likewise, greater than ``a``; may be inf.
        loc: the mean of the normal distribution before it is truncated.
        scale: its standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.truncnorm.logcdf(jnp.array([-0.5, 0.0, 1.5]), -1.0, 2.0).round(4))
    [-1.6977 -0.8747 -0.0553]
    """
    return _log_mass(a, x) - _log_mass(a, b)


@family.survival
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the normal distribution truncated to an interval.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the lower end of the interval, in units of ``scale`` from ``loc``; may be -inf.
        b: the upper end, likewise, greater than ``a``; may be inf.
        loc: the mean of the normal distribution before it is truncated.
        scale: its standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.truncnorm.sf(jnp.array([-0.5, 0.0, 1.5]), -1.0, 2.0).round(4))
    [0.8169 0.583  0.0538]
    """
    return ops.exp(_log_mass(x, b) - _log_mass(a, b))


@family.log_survival
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of the survival function of the normal distribution truncated to an interval.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the lower end of the interval, in units of ``scale`` from ``loc``; may be -inf.
        b: the upper end, likewise, greater than ``a``; may be inf.
        loc: the mean of the normal distribution before it is truncated.
        scale: its standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.truncnorm.logsf(jnp.array([-0.5, 0.0, 1.5]), -1.0, 2.0).round(4))
    [-0.2022 -0.5395 -2.9221]
    """
    return _log_mass(x, b) - _log_mass(a, b)
