"""The binomial distribution."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.special import xlog1py, xlogy
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log_choose

__all__ = ["logpmf", "pmf"]

family = Family(
    low=0,
    high=lambda n, p: n,
    inner=0,
    valid=lambda n, p: (n >= 0) & (ops.floor(n) == n) & (p >= 0) & (p <= 1),
    typical=(1, 0.5),
    whole=True,
)


@family.log_density
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of ``pmf``.

    Args:
        k: how many: integers, as an array, or a number.
        n: the number of trials.
        p: the probability of success.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpmf(2, 5, 0.3):.4f}"
    '-1.1754'
    """
    return log_choose(n, k) + xlogy(k, p) + xlog1py(n - k, -p)


@one_program
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """(n over k) pᵏ (1 - p)ⁿ⁻ᵏ for k = 0, ..., n.

    Args:
        k: how many: integers, as an array, or a number.
        n: the number of trials.
        p: the probability of success.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pmf(2, 5, 0.3):.4f}"
    '0.3087'
    """
    return ops.exp(logpmf(k, n, p, loc))
