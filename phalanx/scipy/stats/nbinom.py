"""The negative binomial distribution: how many trials fail before n succeed."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.primitives.incomplete import betaln
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
    """Logarithm of the probability mass function of the negative binomial distribution, of the
    number of failures before n successes.

    It stays finite where ``pmf`` is too small for a float.

    Args:
        k: the integers at which to evaluate it, of any shape.
        n: the number of successes, positive; need not be an integer.
        p: the probability of success in each trial, greater than 0 and at most 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; -inf off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.nbinom.logpmf(jnp.array([0, 2, 5]), 2.5, 0.3).round(4))
    [-3.0099 -2.2474 -2.3311]
    """
    choices = -ops.log(n + k) - betaln(n, k + 1)
    return choices + n * ops.log(p) + xlog1py(k, -p)


@one_program
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability mass function of the negative binomial distribution, of the number of failures
    before n successes.

    For ``loc=0`` it is (n + k - 1 over k) pⁿ (1 - p)ᵏ for k = 0, 1, ...; in general that at ``k -
    loc``.

    Args:
        k: the integers at which to evaluate it, of any shape.
        n: the number of successes, positive; need not be an integer.
        p: the probability of success in each trial, greater than 0 and at most 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; 0 off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.nbinom.pmf(jnp.array([0, 2, 5]), 2.5, 0.3).round(4))
    [0.0493 0.1057 0.0972]
    """
    return ops.exp(logpmf(k, n, p, loc))
