"""The exponential distribution."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

family = Family(low=0)


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the exponential distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + scale``; positive.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.expon.logpdf(jnp.array([0.0, 1.0, 2.0])).round(4))
    [-0. -1. -2.]
    """
    return -x


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the exponential distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is e⁻ˣ for x ≥ 0. In general it is the
    standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + scale``; positive.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.expon.pdf(jnp.array([0.0, 1.0, 2.0])).round(4))
    [1.     0.3679 0.1353]
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the exponential distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.expon.cdf(jnp.array([0.0, 1.0, 2.0])).round(4))
    [0.     0.6321 0.8647]
    """
    return -ops.expm1(-x)


@family.log_distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the cumulative distribution function of the exponential distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.expon.logcdf(jnp.array([0.0, 1.0, 2.0])).round(4))
    [   -inf -0.4587 -0.1454]
    """
    return log1mexp(-x)


@family.survival
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the exponential distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.expon.sf(jnp.array([0.0, 1.0, 2.0])).round(4))
    [1.     0.3679 0.1353]
    """
    return ops.exp(-x)


@family.log_survival
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the survival function of the exponential distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.expon.logsf(jnp.array([0.0, 1.0, 2.0])).round(4))
    [ 0. -1. -2.]
    """
    return -x


@family.quantile
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile function, the inverse of ``cdf``, of the exponential distribution.

    ``ppf(q)`` is the x with ``cdf(x) == q``.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    >>> print(scipy.stats.expon.ppf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [0.1054 0.6931 2.3026]
    """
    return -ops.log1p(-q)
