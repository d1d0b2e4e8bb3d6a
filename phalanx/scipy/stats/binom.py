"""The binomial distribution."""

from __future__ import annotations

from phalanx import primitives as ops
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
    """Logarithm of the probability mass function of the binomial distribution.

    It stays finite where ``pmf`` is too small for a float.

    Args:
        k: the integers at which to evaluate it, of any shape.
        n: the number of trials, an integer.
        p: the probability of success in each, from 0 to 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; -inf off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.binom.logpmf(jnp.array([0, 2, 5]), 5, 0.3).round(4))
    [-1.7834 -1.1754 -6.0199]
    """
    return log_choose(n, k) + xlogy(k, p) + xlog1py(n - k, -p)


@one_program
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability mass function of the binomial distribution.

    For ``loc=0`` it is (n over k) pᵏ (1 - p)ⁿ⁻ᵏ for k = 0, ..., n; in general that at ``k - loc``.

    Args:
        k: the integers at which to evaluate it, of any shape.
        n: the number of trials, an integer.
        p: the probability of success in each, from 0 to 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; 0 off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.binom.pmf(jnp.array([0, 2, 5]), 5, 0.3).round(4))
    [0.1681 0.3087 0.0024]
    """
    return ops.exp(logpmf(k, n, p, loc))
