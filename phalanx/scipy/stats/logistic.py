"""The logistic distribution."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.special import logit
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]

family = Family()


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the logistic distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: √3/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.logistic.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-1.6265 -1.3863 -2.2539]
    """
    size = ops.abs(x)
    return -size - 2 * ops.log1p(ops.exp(-size))


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the logistic distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is e⁻ˣ / (1 + e⁻ˣ)². In general it is the
    standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: √3/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.logistic.pdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.1966 0.25   0.105 ]
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the logistic distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: √3/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.logistic.cdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.2689 0.5    0.8808]
    """
    return ops.logistic(x)


@family.survival
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the logistic distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: √3/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.logistic.sf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.7311 0.5    0.1192]
    """
    return ops.logistic(-x)


@family.quantile
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile function, the inverse of ``cdf``, of the logistic distribution.

    ``ppf(x)`` is the x with ``cdf(x) == x``.

    Args:
        x: probabilities, from 0 to 1, of any shape.
        loc: the mean.
        scale: √3/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``x`` is outside 0 to 1 or a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.logistic.ppf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [-2.1972  0.      2.1972]
    """
    return logit(x)


@family.upper_quantile
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Inverse of the survival function of the logistic distribution.

    ``isf(x)`` is the x with ``sf(x) == x``; accurate for small ``x``, where ``ppf(1 - x)`` is not.

    Args:
        x: probabilities, from 0 to 1, of any shape.
        loc: the mean.
        scale: √3/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``x`` is outside 0 to 1 or a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.logistic.isf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [ 2.1972 -0.     -2.1972]
    """
    return -logit(x)
