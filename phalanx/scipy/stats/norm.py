"""The normal distribution."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.special import log_ndtr, ndtr, ndtri
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

family = Family()


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the normal distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.norm.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-1.4189 -0.9189 -2.9189]
    """
    return -0.5 * x * x - 0.5 * math.log(2 * math.pi)


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the normal distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is exp(-x²/2) / √(2π). In general it is the
    standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.norm.pdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.242  0.3989 0.054 ]
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the normal distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.norm.cdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.1587 0.5    0.9772]
    """
    return ndtr(x)


@family.log_distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the cumulative distribution function of the normal distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.norm.logcdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-1.841  -0.6931 -0.023 ]
    """
    return log_ndtr(x)


@family.survival
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the normal distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.norm.sf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.8413 0.5    0.0228]
    """
    return ndtr(-x)


@family.log_survival
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the survival function of the normal distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.norm.logsf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-0.1728 -0.6931 -3.7832]
    """
    return log_ndtr(-x)


@family.quantile
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile function, the inverse of ``cdf``, of the normal distribution.

    ``ppf(q)`` is the x with ``cdf(x) == q``.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    >>> print(scipy.stats.norm.ppf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [-1.2816 -0.      1.2816]
    """
    return ndtri(q)


@family.upper_quantile
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Inverse of the survival function of the normal distribution.

    ``isf(q)`` is the x with ``sf(x) == q``; accurate for small ``q``, where ``ppf(1 - q)`` is not.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        loc: the mean.
        scale: the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    >>> print(scipy.stats.norm.isf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [ 1.2816  0.     -1.2816]
    """
    return -ndtri(q)
