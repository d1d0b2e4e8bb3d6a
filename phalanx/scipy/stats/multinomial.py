"""The multinomial distribution: how many of n trials come out in each way."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.numpy.promotion import inexact, real
from phalanx.scipy.special import xlogy
from phalanx.scipy.stats.family import ArrayLike

__all__ = ["logpmf", "pmf"]


@one_program
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of ``pmf``.

    Args:
        x: how many trials come out in each way, along the last axis.
        n: how many there are; [...].
        p: the probability of each way, along the last axis; they add up to 1.

    Returns:
        Numbers, of the shape of ``x`` without the last dimension.

    >>> f"{logpmf(np.array([1, 2, 1]), 4, np.array([0.2, 0.5, 0.3])):.4f}"
    '-1.7148'
    """
    x, n, p = (inexact("multinomial.logpmf", each) for each in (x, n, p))
    x, p = real("multinomial.logpmf", x, p)
    n, _ = real("multinomial.logpmf", n, x[..., :1].sum(-1))
    possible = ((x >= 0) & (ops.floor(x) == x)).all(-1) & (x.sum(-1) == n)
    valid = ((p >= 0) & (p <= 1)).all(-1) & (n >= 0) & (x == x).all(-1)
    usable = valid & possible
    k, q = where(usable[..., None], x, 0), where(usable[..., None], p, 0.5)
    out = ops.lgamma(where(usable, n, 0) + 1) + (xlogy(k, q) - ops.lgamma(k + 1)).sum(-1)
    # NaN with slopes that are NaN, too
    nowhere = math.nan * where(valid, 0, n + (x + p).sum(-1))
    return where(valid, where(possible, out, -math.inf), nowhere)


@one_program
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """n! Π pᵢ^xᵢ / xᵢ!, 0 unless Σ xᵢ = n.

    Args:
        x: how many trials come out in each way, along the last axis.
        n: how many there are; [...].
        p: the probability of each way, along the last axis; they add up to 1.

    Returns:
        Numbers, of the shape of ``x`` without the last dimension.

    >>> f"{pmf(np.array([1, 2, 1]), 4, np.array([0.2, 0.5, 0.3])):.4f}"
    '0.1800'
    """
    return ops.exp(logpmf(x, n, p))
