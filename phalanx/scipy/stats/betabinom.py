"""The binomial distribution with a probability of the beta distribution."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.ops.incomplete import betaln
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log_choose

__all__ = ["logpmf", "pmf"]

family = Family(
    low=0,
    high=lambda n, a, b: n,
    inner=0,
    valid=lambda n, a, b: (n >= 0) & (ops.floor(n) == n) & (a > 0) & (b > 0),
    typical=(1, 1, 1),
    whole=True,
)


@family.log_density
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of ``pmf``.

    Args:
        k: how many: integers, as an array, or a number.
        n: the number of trials.
        a: the first shape parameter of the probability, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpmf(2, 5, 2.0, 3.0):.4f}"
    '-1.4351'
    """
    return log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b)


@one_program
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """(n over k) B(k + a, n - k + b) / B(a, b) for k = 0, ..., n.

    Args:
        k: how many: integers, as an array, or a number.
        n: the number of trials.
        a: the first shape parameter of the probability, positive.
        b: the second.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pmf(2, 5, 2.0, 3.0):.4f}"
    '0.2381'
    """
    return ops.exp(logpmf(k, n, a, b, loc))
