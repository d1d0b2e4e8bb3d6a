"""The Cauchy distribution."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.searching import where
from phalanx.numpy.trigonometric import arctan2
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1p_square, log_of

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

family = Family()


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the Cauchy distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.cauchy.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-1.8379 -1.1447 -2.7542]
    """
    return -math.log(math.pi) - log1p_square(x)


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the Cauchy distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is 1 / (π (1 + x²)). In general it is the
    standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.cauchy.pdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.1592 0.3183 0.0637]
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the Cauchy distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.cauchy.cdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.25   0.5    0.8524]
    """
    return _below(x)


@family.log_distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the cumulative distribution function of the Cauchy distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.cauchy.logcdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-1.3863 -0.6931 -0.1597]
    """
    return log_of(_below(x), _below(-x))


@family.survival
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the Cauchy distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.cauchy.sf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.75   0.5    0.1476]
    """
    return _below(-x)


@family.log_survival
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the survival function of the Cauchy distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.cauchy.logsf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-0.2877 -0.6931 -1.9134]
    """
    return log_of(_below(-x), _below(x))


@family.quantile
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile function, the inverse of ``cdf``, of the Cauchy distribution.

    ``ppf(q)`` is the x with ``cdf(x) == q``.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    >>> print(scipy.stats.cauchy.ppf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [-3.0777 -0.      3.0777]
    """
    return _at(q)


@family.upper_quantile
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Inverse of the survival function of the Cauchy distribution.

    ``isf(q)`` is the x with ``sf(x) == q``; accurate for small ``q``, where ``ppf(1 - q)`` is not.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        loc: the median.
        scale: half of the width at half of the maximum, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    >>> print(scipy.stats.cauchy.isf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [ 3.0777  0.     -3.0777]
    """
    return -_at(q)


def _below(x: Array) -> Array:
    return arctan2(1, -x) / math.pi


def _at(q: Array) -> Array:
    """The number of that quantile, by the nearer end."""
    tail = where(q < 0.5, q, 1 - q)
    size = 1 / ops.tan(math.pi * tail)
    return where(q < 0.5, -size, size)
