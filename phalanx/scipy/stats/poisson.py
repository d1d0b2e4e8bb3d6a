"""The Poisson distribution."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.loops import fori_loop
from phalanx.numpy.choice import where
from phalanx.numpy.promotion import real
from phalanx.ops.incomplete import igamma
from phalanx.scipy.special import xlogy
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "entropy", "logpmf", "pmf"]

family = Family(low=0, inner=0, valid=lambda mu: mu >= 0, typical=(1,), whole=True)


@family.log_density
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of ``pmf``.

    Args:
        k: how many: integers, as an array, or a number.
        mu: the mean.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpmf(2, 1.5):.4f}"
    '-1.3822'
    """
    return xlogy(k, mu) - mu - ops.lgamma(k + 1)


@one_program
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """μᵏ e^-μ / k! for k = 0, 1, ...

    Args:
        k: how many: integers, as an array, or a number.
        mu: the mean.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pmf(2, 1.5):.4f}"
    '0.2510'
    """
    return ops.exp(logpmf(k, mu, loc))


@family.distribution
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of what is not greater than k.

    Args:
        k: how many: integers, as an array, or a number.
        mu: the mean.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{cdf(2, 1.5):.4f}"
    '0.8088'
    """
    return igamma(k + 1, mu, upper=True)


@one_program
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """-Σ pmf(k) log pmf(k) over k ≥ 0; the same for every ``loc``.

    By the sum where μ is below 100, and above by its asymptotic series (Evans and Boersma, The
    entropy of a Poisson distribution, 1988).

    Args:
        mu: the mean.
        loc: the point at 0 of the standard distribution, to which it is moved.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{entropy(1.5):.4f}"
    '1.5394'
    """
    mu, _ = real("poisson.entropy", mu, loc)
    valid, large = mu >= 0, mu >= _LARGE
    few = where((mu > 0) & ~large, mu, 1)
    nowhere = math.nan * where(valid, 0, mu)  # with a slope that is NaN, too

    def add(k: Array, total: Array) -> Array:
        count = ops.convert(k, dtype=few.dtype, weak=False)
        logs = xlogy(count, few) - few - ops.lgamma(count + 1)
        return total - ops.exp(logs) * logs

    summed = fori_loop(0, 2 * _LARGE, add, ops.mul(few, 0))
    many = where(large, mu, _LARGE)
    series = 0.5 * ops.log(2 * math.pi * math.e * many)
    r = 1 / many
    series = series - r * (1 / 12 + r * (1 / 24 + r * (19 / 360 + r * (9 / 80 + r * 863 / 2520))))
    return where(valid, where(large, series, where(mu == 0, 0, summed)), nowhere)


_LARGE = 100
