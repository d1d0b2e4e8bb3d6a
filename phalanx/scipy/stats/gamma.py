"""The gamma distribution."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.primitives.incomplete import igamma
from phalanx.scipy.special import xlogy
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log_of

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

family = Family(low=0, valid=lambda a: a > 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the gamma distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the shape parameter, positive.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + a * scale``; positive.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gamma.logpdf(jnp.array([0.5, 1.0, 4.0]), 2.0).round(4))
    [-1.1931 -1.     -2.6137]
    """
    return xlogy(a - 1, x) - x - ops.lgamma(a)


@one_program
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the gamma distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is xᵃ⁻¹ e⁻ˣ / Γ(a) for x ≥ 0. In general it
    is the standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the shape parameter, positive.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + a * scale``; positive.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gamma.pdf(jnp.array([0.5, 1.0, 4.0]), 2.0).round(4))
    [0.3033 0.3679 0.0733]
    """
    return ops.exp(logpdf(x, a, loc, scale))


@family.distribution
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the gamma distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the shape parameter, positive.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + a * scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gamma.cdf(jnp.array([0.5, 1.0, 4.0]), 2.0).round(4))
    [0.0902 0.2642 0.9084]
    """
    return igamma(a, x, upper=False)


@family.log_distribution
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the cumulative distribution function of the gamma distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the shape parameter, positive.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + a * scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gamma.logcdf(jnp.array([0.5, 1.0, 4.0]), 2.0).round(4))
    [-2.4057 -1.3309 -0.096 ]
    """
    return log_of(igamma(a, x, upper=False), igamma(a, x, upper=True))


@family.survival
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the gamma distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the shape parameter, positive.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + a * scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gamma.sf(jnp.array([0.5, 1.0, 4.0]), 2.0).round(4))
    [0.9098 0.7358 0.0916]
    """
    return igamma(a, x, upper=True)


@family.log_survival
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the survival function of the gamma distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the shape parameter, positive.
        loc: the lower end of the support.
        scale: 1 / rate: the mean is ``loc + a * scale``; positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gamma.logsf(jnp.array([0.5, 1.0, 4.0]), 2.0).round(4))
    [-0.0945 -0.3069 -2.3906]
    """
    return log_of(igamma(a, x, upper=True), igamma(a, x, upper=False))
