"""The multinomial distribution: how many of n trials come out in each way."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import inexact, real
from phalanx.numpy.searching import where
from phalanx.scipy.special import xlogy
from phalanx.scipy.stats.family import ArrayLike

__all__ = ["logpmf", "pmf"]


@one_program
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Logarithm of the probability mass function of the multinomial distribution.

    It stays finite where ``pmf`` is too small for a float.

    Args:
        x: how many trials come out in each of k ways, [..., k].
        n: the number of trials, [...].
        p: the probability of each way, [..., k]; they add up to 1.

    Returns:
        Floats [...]; -inf where the xᵢ are not integers from 0 on that add up to ``n``, NaN where a
        parameter is not valid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> x = jnp.array([[1, 2, 1], [4, 0, 0]])
    >>> print(scipy.stats.multinomial.logpmf(x, 4, jnp.array([0.2, 0.5, 0.3])).round(4))
    [-1.7148 -6.4378]
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
    """Probability mass function of the multinomial distribution.

    It is n! Π pᵢ^xᵢ / xᵢ!: the probability that of n independent trials xᵢ come out in way i.

    Args:
        x: how many trials come out in each of k ways, [..., k].
        n: the number of trials, [...].
        p: the probability of each way, [..., k]; they add up to 1.

    Returns:
        Floats [...]; 0 where the xᵢ are not integers from 0 on that add up to ``n``, NaN where a
        parameter is not valid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> x = jnp.array([[1, 2, 1], [4, 0, 0]])
    >>> print(scipy.stats.multinomial.pmf(x, 4, jnp.array([0.2, 0.5, 0.3])).round(4))
    [0.18   0.0016]
    """
    return ops.exp(logpmf(x, n, p))
