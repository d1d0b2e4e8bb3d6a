"""The Poisson distribution."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.loops import fori_loop
from phalanx.numpy.promotion import real
from phalanx.numpy.searching import where
from phalanx.primitives.incomplete import igamma
from phalanx.scipy.special import xlogy
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "entropy", "logpmf", "pmf"]

family = Family(low=0, inner=0, valid=lambda mu: mu >= 0, typical=(1,), whole=True)


@family.log_density
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability mass function of the Poisson distribution.

    It stays finite where ``pmf`` is too small for a float.

    Args:
        k: the integers at which to evaluate it, of any shape.
        mu: the mean, not negative.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; -inf off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``mu`` is complex.

    >>> print(scipy.stats.poisson.logpmf(jnp.array([0, 2, 5]), 1.5).round(4))
    [-1.5    -1.3822 -4.2602]
    """
    return xlogy(k, mu) - mu - ops.lgamma(k + 1)


@one_program
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability mass function of the Poisson distribution.

    For ``loc=0`` it is μᵏ e^-μ / k! for k = 0, 1, ...; in general that at ``k - loc``.

    Args:
        k: the integers at which to evaluate it, of any shape.
        mu: the mean, not negative.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; 0 off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``mu`` is complex.

    >>> print(scipy.stats.poisson.pmf(jnp.array([0, 2, 5]), 1.5).round(4))
    [0.2231 0.251  0.0141]
    """
    return ops.exp(logpmf(k, mu, loc))


@family.distribution
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Cumulative distribution function of the Poisson distribution.

    That is the probability of a value less than or equal to k.

    Args:
        k: the numbers at which to evaluate it, of any shape; between integers it is that of the one
            below.
        mu: the mean, not negative.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``mu`` is complex.

    >>> print(scipy.stats.poisson.cdf(jnp.array([0, 2, 5]), 1.5).round(4))
    [0.2231 0.8088 0.9955]
    """
    return igamma(k + 1, mu, upper=True)


@one_program
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Entropy of the Poisson distribution, in nats; the same for every ``loc``.

    -Σ pmf(k) log pmf(k) over k ≥ 0: the sum where μ is below 100, and its asymptotic series above
    (Evans and Boersma, The entropy of a Poisson distribution, 1988).

    Args:
        mu: the mean, not negative.
        loc: accepted like that of ``pmf``; the result does not depend on it.

    Returns:
        Floats of the broadcast shape; NaN where ``mu`` is negative.

    Raises:
        TypeError: ``mu`` is complex.

    >>> print(scipy.stats.poisson.entropy(jnp.array([0.5, 1.5, 200.0])).round(4))
    [0.9276 1.5394 4.0677]
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
