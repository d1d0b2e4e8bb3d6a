"""The generalized normal distribution."""

from __future__ import annotations

from phalanx import ops
from phalanx.base import dtypes
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.ops.incomplete import igamma
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "logpdf", "pdf"]

family = Family(valid=lambda beta: beta > 0, typical=(2,))


@family.log_density
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        beta: the power in the exponent: 2 as for normal numbers, 1 as for Laplace's.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, 1.5):.4f}"
    '-0.9444'
    """
    return ops.log(beta / 2) - ops.lgamma(1 / beta) - _power(x, beta)


@one_program
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """β exp(-|x|^β) / (2 Γ(1/β)).

    Args:
        x: where: an array, or a number.
        beta: the power in the exponent: 2 as for normal numbers, 1 as for Laplace's.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, 1.5):.4f}"
    '0.3889'
    """
    return ops.exp(logpdf(x, beta))


@family.distribution
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of what is not greater than x.

    Args:
        x: where: an array, or a number.
        beta: the power in the exponent: 2 as for normal numbers, 1 as for Laplace's.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(0.5, 1.5):.4f}"
    '0.7417'
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
