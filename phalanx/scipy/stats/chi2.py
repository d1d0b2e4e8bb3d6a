"""The distribution of the sum of df squares of standard normal numbers."""

from __future__ import annotations

from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import divide, multiply
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.scipy.stats import gamma

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@one_program
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the chi-squared distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive.
        loc: the lower end of the support.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.chi2.logpdf(jnp.array([0.5, 3.0, 8.0]), 3.0).round(4))
    [-1.5155 -1.8696 -3.8792]
    """
    return gamma.logpdf(*_of_gamma(x, df, loc, scale))


@one_program
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the chi-squared distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is x^(df/2 - 1) e^(-x/2) / (2^(df/2)
    Γ(df/2)) for x ≥ 0. In general it is the standard one at ``(x - loc) / scale``, divided by
    ``scale``.

    It is that of the sum of ``df`` squares of independent standard normal numbers.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive.
        loc: the lower end of the support.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.chi2.pdf(jnp.array([0.5, 3.0, 8.0]), 3.0).round(4))
    [0.2197 0.1542 0.0207]
    """
    return gamma.pdf(*_of_gamma(x, df, loc, scale))


@one_program
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the chi-squared distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive.
        loc: the lower end of the support.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.chi2.cdf(jnp.array([0.5, 3.0, 8.0]), 3.0).round(4))
    [0.0811 0.6084 0.954 ]
    """
    return gamma.cdf(*_of_gamma(x, df, loc, scale))


@one_program
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the cumulative distribution function of the chi-squared distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive.
        loc: the lower end of the support.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.chi2.logcdf(jnp.array([0.5, 3.0, 8.0]), 3.0).round(4))
    [-2.512  -0.497  -0.0471]
    """
    return gamma.logcdf(*_of_gamma(x, df, loc, scale))


@one_program
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the chi-squared distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive.
        loc: the lower end of the support.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.chi2.sf(jnp.array([0.5, 3.0, 8.0]), 3.0).round(4))
    [0.9189 0.3916 0.046 ]
    """
    return gamma.sf(*_of_gamma(x, df, loc, scale))


@one_program
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the survival function of the chi-squared distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive.
        loc: the lower end of the support.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.chi2.logsf(jnp.array([0.5, 3.0, 8.0]), 3.0).round(4))
    [-0.0846 -0.9375 -3.0789]
    """
    return gamma.logsf(*_of_gamma(x, df, loc, scale))


def _of_gamma(x: ArrayLike, df: ArrayLike, loc: ArrayLike, scale: ArrayLike) -> list[Array]:
    """The arguments of the gamma distribution that it is."""
    x, df, loc, scale = real("chi2", x, df, loc, scale)
    return [x, divide(df, 2), loc, multiply(scale, 2)]
