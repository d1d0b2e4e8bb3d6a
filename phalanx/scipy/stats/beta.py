"""The beta distribution."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.searching import where
from phalanx.primitives.incomplete import betainc, betaln
from phalanx.scipy.special import xlog1py, xlogy
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log_of

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

family = Family(low=0, high=1, valid=lambda a, b: (a > 0) & (b > 0), typical=(1, 1))


@family.log_density
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of the probability density function of the beta distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the first shape parameter, positive.
        b: the second shape parameter, positive.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.beta.logpdf(jnp.array([0.1, 0.5, 0.9]), 2.0, 3.0).round(4))
    [-0.0284  0.4055 -2.2256]
    """
    return xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b)


@one_program
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Probability density function of the beta distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) for 0 ≤ x ≤ 1.
    In general it is the standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the first shape parameter, positive.
        b: the second shape parameter, positive.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.beta.pdf(jnp.array([0.1, 0.5, 0.9]), 2.0, 3.0).round(4))
    [0.972 1.5   0.108]
    """
    return ops.exp(logpdf(x, a, b, loc, scale))


@family.distribution
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Cumulative distribution function of the beta distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the first shape parameter, positive.
        b: the second shape parameter, positive.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.beta.cdf(jnp.array([0.1, 0.5, 0.9]), 2.0, 3.0).round(4))
    [0.0523 0.6875 0.9963]
    """
    return betainc(a, b, x)


@family.log_distribution
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of the cumulative distribution function of the beta distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the first shape parameter, positive.
        b: the second shape parameter, positive.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.beta.logcdf(jnp.array([0.1, 0.5, 0.9]), 2.0, 3.0).round(4))
    [-2.9508 -0.3747 -0.0037]
    """
    return log_of(betainc(a, b, x), _above(a, b, x))


@family.survival
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the beta distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the first shape parameter, positive.
        b: the second shape parameter, positive.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.beta.sf(jnp.array([0.1, 0.5, 0.9]), 2.0, 3.0).round(4))
    [0.9477 0.3125 0.0037]
    """
    return _above(a, b, x)


@family.log_survival
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of the survival function of the beta distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        a: the first shape parameter, positive.
        b: the second shape parameter, positive.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.beta.logsf(jnp.array([0.1, 0.5, 0.9]), 2.0, 3.0).round(4))
    [-0.0537 -1.1632 -5.5994]
    """
    return log_of(_above(a, b, x), betainc(a, b, x))


def _above(a: Array, b: Array, x: Array) -> Array:
    """1 - I_x(a, b), exact where it is small, and where x is."""
    below = betainc(a, b, x)
    return where(below < 0.5, 1 - below, betainc(b, a, 1 - x))
