"""The generalized normal distribution."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.searching import where
from phalanx.primitives.incomplete import igamma
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "logpdf", "pdf"]

family = Family(valid=lambda beta: beta > 0, typical=(2,))


@family.log_density
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Logarithm of the probability density function of the generalized normal distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        beta: the exponent of |x|, positive: 2 for a normal, 1 for a Laplace distribution.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gennorm.logpdf(jnp.array([-1.0, 0.0, 2.0]), 1.5).round(4))
    [-1.5908 -0.5908 -3.4193]
    """
    return ops.log(beta / 2) - ops.lgamma(1 / beta) - _power(x, beta)


@one_program
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Probability density function of the generalized normal distribution.

    It is β exp(-|x|^β) / (2 Γ(1/β)).

    Args:
        x: the points at which to evaluate it, of any shape.
        beta: the exponent of |x|, positive: 2 for a normal, 1 for a Laplace distribution.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gennorm.pdf(jnp.array([-1.0, 0.0, 2.0]), 1.5).round(4))
    [0.2038 0.5539 0.0327]
    """
    return ops.exp(logpdf(x, beta))


@family.distribution
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Cumulative distribution function of the generalized normal distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        beta: the exponent of |x|, positive: 2 for a normal, 1 for a Laplace distribution.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.gennorm.cdf(jnp.array([-1.0, 0.0, 2.0]), 1.5).round(4))
    [0.1124 0.5    0.9859]
    """
    size = _power(x, beta)
    near = size < float(dtypes.finfo(size.dtype).eps)
    tail = 0.5 * igamma(1 / beta, where(near, 1, size), upper=True)
    close = 0.5 + 0.5 * x * ops.exp(-ops.lgamma(1 + 1 / beta))
    return where(near, close, where(x < 0, tail, 1 - tail))


def _power(x: Array, beta: Array) -> Array:
    """|x|^β, flat at 0."""
    zero = x == 0
    return where(zero, 0, ops.pow(ops.abs(where(zero, 1, x)), beta))
