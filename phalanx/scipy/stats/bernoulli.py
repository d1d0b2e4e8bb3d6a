"""The Bernoulli distribution."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.scipy.special import xlog1py, xlogy
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

family = Family(low=0, high=1, valid=lambda p: (p >= 0) & (p <= 1), typical=(0.5,), whole=True)


@family.log_density
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of ``pmf``.

    Args:
        k: 0 or 1.
        p: the probability of 1.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpmf(1, 0.3):.4f}"
    '-1.2040'
    """
    return xlogy(k, p) + xlog1py(1 - k, -p)


@one_program
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """1 - p at k = 0 and p at k = 1.

    Args:
        k: 0 or 1.
        p: the probability of 1.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pmf(1, 0.3):.4f}"
    '0.3000'
    """
    return ops.exp(logpmf(k, p, loc))


@family.distribution
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of what is not greater than k.

    Args:
        k: 0 or 1.
        p: the probability of 1.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(1, 0.3):.4f}"
    '1.0000'
    """
    return 1 - p


@family.quantile
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The number whose ``cdf`` is q.

    Args:
        q: probabilities, from 0 to 1: an array, or a number.
        p: the probability of 1.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{ppf(0.3, 0.3):.4f}"
    '0.0000'
    """
    return where(q <= 1 - p, 0, 1)
