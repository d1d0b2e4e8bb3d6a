"""The uniform distribution, from loc to loc + scale."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

family = Family(low=0, high=1)


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the uniform distribution on [loc, loc +
    scale].

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.uniform.logpdf(jnp.array([-1.0, 1.0, 3.0]), loc=0.0, scale=2.0).round(4))
    [   -inf -0.6931    -inf]
    """
    return ops.mul(x, 0)


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the uniform distribution on [loc, loc + scale].

    It is ``1 / scale`` from ``loc`` to ``loc + scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.uniform.pdf(jnp.array([-1.0, 1.0, 3.0]), loc=0.0, scale=2.0).round(4))
    [0.  0.5 0. ]
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the uniform distribution on [loc.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.uniform.cdf(jnp.array([-1.0, 1.0, 3.0]), loc=0.0, scale=2.0).round(4))
    [0.  0.5 1. ]
    """
    return x


@family.quantile
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile function, the inverse of ``cdf``, of the uniform distribution on [loc.

    ``ppf(q)`` is the x with ``cdf(x) == q``.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        loc: the lower end of the support.
        scale: the width of the support, positive.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    >>> print(scipy.stats.uniform.ppf(jnp.array([0.1, 0.5, 0.9]), loc=0.0, scale=2.0).round(4))
    [0.2 1.  1.8]
    """
    return q
