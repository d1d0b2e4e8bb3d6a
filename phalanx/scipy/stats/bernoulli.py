"""The Bernoulli distribution."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.searching import where
from phalanx.scipy.special import xlog1py, xlogy
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

family = Family(low=0, high=1, valid=lambda p: (p >= 0) & (p <= 1), typical=(0.5,), whole=True)


@family.log_density
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability mass function of the Bernoulli distribution.

    It stays finite where ``pmf`` is too small for a float.

    Args:
        k: the integers at which to evaluate it, of any shape.
        p: the probability of 1, from 0 to 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; -inf off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.bernoulli.logpmf(jnp.array([0, 1]), 0.3).round(4))
    [-0.3567 -1.204 ]
    """
    return xlogy(k, p) + xlog1py(1 - k, -p)


@one_program
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability mass function of the Bernoulli distribution.

    For ``loc=0`` it is 1 - p at k = 0 and p at k = 1; in general that at ``k - loc``.

    Args:
        k: the integers at which to evaluate it, of any shape.
        p: the probability of 1, from 0 to 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; 0 off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.bernoulli.pmf(jnp.array([0, 1]), 0.3).round(4))
    [0.7 0.3]
    """
    return ops.exp(logpmf(k, p, loc))


@family.distribution
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """Cumulative distribution function of the Bernoulli distribution.

    That is the probability of a value less than or equal to k.

    Args:
        k: the numbers at which to evaluate it, of any shape; between integers it is that of the one
            below.
        p: the probability of 1, from 0 to 1.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.bernoulli.cdf(jnp.array([0, 1]), 0.3).round(4))
    [0.7 1. ]
    """
    return 1 - p


@family.quantile
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Quantile function, the inverse of ``cdf``, of the Bernoulli distribution.

    ``ppf(q)`` is the smallest integer x with ``cdf(x) >= q``.

    Args:
        q: probabilities, from 0 to 1, of any shape.
        p: the probability of 1, from 0 to 1.

    Returns:
        Floats of the broadcast shape; NaN where ``q`` is outside 0 to 1 or a parameter is invalid.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.bernoulli.ppf(jnp.array([0.1, 0.5, 0.9]), 0.3).round(4))
    [0. 0. 1.]
    """
    return where(q <= 1 - p, 0, 1)
