"""The geometric distribution: how many trials it takes to succeed."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.special import xlog1py
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["logpmf", "pmf"]

family = Family(low=1, inner=1, valid=lambda p: (p > 0) & (p <= 1), typical=(0.5,), whole=True)


@family.log_density
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability mass function of the geometric distribution, of the number of
    trials up to the first success.

    It stays finite where ``pmf`` is too small for a float.

    Args:
        k: the integers at which to evaluate it, of any shape.
        p: the probability of success in each trial, greater than 0 and at most 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; -inf off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.geom.logpmf(jnp.array([1, 2, 5]), 0.3).round(4))
    [-1.204  -1.5606 -2.6307]
    """
    return xlog1py(k - 1, -p) + ops.log(p)


@one_program
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability mass function of the geometric distribution, of the number of trials up to the
    first success.

    For ``loc=0`` it is p (1 - p)ᵏ⁻¹ for k = 1, 2, ...; in general that at ``k - loc``.

    Args:
        k: the integers at which to evaluate it, of any shape.
        p: the probability of success in each trial, greater than 0 and at most 1.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; 0 off the support's integers, NaN for invalid parameters.

    Raises:
        TypeError: ``p`` is complex.

    >>> print(scipy.stats.geom.pmf(jnp.array([1, 2, 5]), 0.3).round(4))
    [0.3   0.21  0.072]
    """
    return ops.exp(logpmf(k, p, loc))
