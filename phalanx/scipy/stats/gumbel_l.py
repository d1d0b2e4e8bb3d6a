"""The Gumbel distribution of the least of many numbers."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import bounded_exp, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

family = Family()


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the left-skewed Gumbel distribution, of
    minima.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mode.
        scale: √6/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.gumbel_l.logpdf(jnp.array([-2.0, 0.0, 1.0])).round(4))
    [-2.1353 -1.     -1.7183]
    """
    return x - bounded_exp(x)


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the left-skewed Gumbel distribution, of minima.

    In standard form, for ``loc=0`` and ``scale=1``, it is exp(x - eˣ). In general it is the
    standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mode.
        scale: √6/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.gumbel_l.pdf(jnp.array([-2.0, 0.0, 1.0])).round(4))
    [0.1182 0.3679 0.1794]
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the left-skewed Gumbel distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mode.
        scale: √6/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.gumbel_l.cdf(jnp.array([-2.0, 0.0, 1.0])).round(4))
    [0.1266 0.6321 0.934 ]
    """
    return -ops.expm1(-bounded_exp(x))


@family.log_distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the cumulative distribution function of the left-skewed Gumbel distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mode.
        scale: √6/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.gumbel_l.logcdf(jnp.array([-2.0, 0.0, 1.0])).round(4))
    [-2.0669 -0.4587 -0.0683]
    """
    return log1mexp(-bounded_exp(x))


@family.survival
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the left-skewed Gumbel distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mode.
        scale: √6/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.gumbel_l.sf(jnp.array([-2.0, 0.0, 1.0])).round(4))
    [0.8734 0.3679 0.066 ]
    """
    return ops.exp(-bounded_exp(x))


@family.log_survival
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the survival function of the left-skewed Gumbel distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mode.
        scale: √6/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.gumbel_l.logsf(jnp.array([-2.0, 0.0, 1.0])).round(4))
    [-0.1353 -1.     -2.7183]
    """
    return -bounded_exp(x)


@family.quantile
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile function, the inverse of ``cdf``, of the left-skewed Gumbel distribution.

    ``ppf(p)`` is the x with ``cdf(x) == p``.

    Args:
        p: probabilities, from 0 to 1, of any shape.
        loc: the mode.
        scale: √6/π times the standard deviation, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``p`` is outside 0 to 1 or a parameter is invalid.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.gumbel_l.ppf(jnp.array([0.1, 0.5, 0.9])).round(4))
    [-2.2504 -0.3665  0.834 ]
    """
    return ops.log(-ops.log1p(-p))
