"""The geometric distribution: how many trials it takes to succeed."""

from __future__ import annotations

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.special import xlog1py
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["logpmf", "pmf"]

family = Family(low=1, inner=1, valid=lambda p: (p > 0) & (p <= 1), typical=(0.5,), whole=True)


@family.log_density
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of ``pmf``.

    Args:
        k: how many: integers, as an array, or a number.
        p: the probability of success.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpmf(2, 0.3):.4f}"
    '-1.5606'
    """
    return xlog1py(k - 1, -p) + ops.log(p)


@one_program
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """p (1 - p)ᵏ⁻¹ for k = 1, 2, ...

    Args:
        k: how many: integers, as an array, or a number.
        p: the probability of success.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pmf(2, 0.3):.4f}"
    '0.2100'
    """
    return ops.exp(logpmf(k, p, loc))
