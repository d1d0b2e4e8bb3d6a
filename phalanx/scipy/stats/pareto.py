"""The Pareto distribution."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

family = Family(low=1, inner=2, valid=lambda b: b > 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the Pareto distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        b: the exponent of the tail, positive.
        loc: shift of the distribution; the support begins at ``loc + scale``.
        scale: the lower end of the support where ``loc`` is 0, positive.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.pareto.logpdf(jnp.array([1.0, 1.5, 4.0]), 2.0).round(4))
    [ 0.6931 -0.5232 -3.4657]
    """
    return ops.log(b) - (b + 1) * ops.log(x)


@one_program
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the Pareto distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is b / xᵇ⁺¹ for x ≥ 1. In general it is the
    standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        b: the exponent of the tail, positive.
        loc: shift of the distribution; the support begins at ``loc + scale``.
        scale: the lower end of the support where ``loc`` is 0, positive.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.pareto.pdf(jnp.array([1.0, 1.5, 4.0]), 2.0).round(4))
    [2.     0.5926 0.0312]
    """
    return ops.exp(logpdf(x, b, loc, scale))


@family.distribution
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the Pareto distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        b: the exponent of the tail, positive.
        loc: shift of the distribution; the support begins at ``loc + scale``.
        scale: the lower end of the support where ``loc`` is 0, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.pareto.cdf(jnp.array([1.0, 1.5, 4.0]), 2.0).round(4))
    [0.     0.5556 0.9375]
    """
    return -ops.expm1(-b * ops.log(x))


@family.log_distribution
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the cumulative distribution function of the Pareto distribution.

    It is accurate also where ``cdf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        b: the exponent of the tail, positive.
        loc: shift of the distribution; the support begins at ``loc + scale``.
        scale: the lower end of the support where ``loc`` is 0, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.pareto.logcdf(jnp.array([1.0, 1.5, 4.0]), 2.0).round(4))
    [   -inf -0.5878 -0.0645]
    """
    return log1mexp(-b * ops.log(x))


@family.survival
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Survival function, 1 - cdf, of the Pareto distribution.

    That is the probability of a value greater than x, accurate also where it is too small to be
    seen in ``1 - cdf(x)``.

    Args:
        x: the points at which to evaluate it, of any shape.
        b: the exponent of the tail, positive.
        loc: shift of the distribution; the support begins at ``loc + scale``.
        scale: the lower end of the support where ``loc`` is 0, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.pareto.sf(jnp.array([1.0, 1.5, 4.0]), 2.0).round(4))
    [1.     0.4444 0.0625]
    """
    return ops.exp(-b * ops.log(x))


@family.log_survival
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the survival function of the Pareto distribution.

    It is accurate also where ``sf`` rounds to 1.

    Args:
        x: the points at which to evaluate it, of any shape.
        b: the exponent of the tail, positive.
        loc: shift of the distribution; the support begins at ``loc + scale``.
        scale: the lower end of the support where ``loc`` is 0, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.pareto.logsf(jnp.array([1.0, 1.5, 4.0]), 2.0).round(4))
    [ 0.     -0.8109 -2.7726]
    """
    return -b * ops.log(x)


@family.quantile
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile function, the inverse of ``cdf``, of the Pareto distribution.

    ``ppf(q)`` is the x with ``cdf(x) == q``.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        b: the exponent of the tail, positive.
        loc: shift of the distribution; the support begins at ``loc + scale``.
        scale: the lower end of the support where ``loc`` is 0, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    Raises:
        TypeError: ``b`` is complex.

    >>> print(scipy.stats.pareto.ppf(jnp.array([0.1, 0.5, 0.9]), 2.0).round(4))
    [1.0541 1.4142 3.1623]
    """
    return ops.exp(-ops.log1p(-q) / b)
