"""The negative binomial distribution: how many trials fail before n succeed."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.ops.incomplete import betaln
from phalanx.scipy.special import xlog1py
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["logpmf", "pmf"]

family = Family(
    low=0,
    inner=0,
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    typical=(1, 0.5),
    whole=True,
)


@family.log_density
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of ``pmf``.

    Args:
        k: how many: integers, as an array, or a number.
        n: the number of successes.
        p: the probability of one.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpmf(2, 2.5, 0.3):.4f}"
    '-2.2474'
    """
    choices = -ops.log(n + k) - betaln(n, k + 1)
    return choices + n * ops.log(p) + xlog1py(k, -p)


@one_program
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """(n + k - 1 over k) pⁿ (1 - p)ᵏ for k = 0, 1, ...

    Args:
        k: how many: integers, as an array, or a number.
        n: the number of successes.
        p: the probability of one.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pmf(2, 2.5, 0.3):.4f}"
    '0.1057'
    """
    return ops.exp(logpmf(k, n, p, loc))
