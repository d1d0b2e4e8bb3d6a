"""The beta-binomial distribution: binomial, with a beta-distributed probability of success."""

from __future__ import annotations

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.primitives.incomplete import betaln
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log_choose

__all__ = ["logpmf", "pmf"]

family = Family(
    low=0,
    high=lambda n, a, b: n,
    inner=0,
    valid=lambda n, a, b: (n >= 0) & (ops.floor(n) == n) & (a > 0) & (b > 0),
    typical=(1, 1, 1),
    whole=True,
)


@family.log_density
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability mass function of the beta-binomial distribution.

    It stays finite where ``pmf`` is too small for a float.

    Args:
        k: the integers at which to evaluate it, of any shape.
        n: the number of trials, an integer.
        a: the first shape parameter of the beta distribution, positive.
        b: the second, positive.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; -inf off the support's integers, NaN for invalid parameters.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.betabinom.logpmf(jnp.array([0, 2, 5]), 5, 2.0, 3.0).round(4))
    [-1.7918 -1.4351 -3.0445]
    """
    return log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b)


@one_program
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability mass function of the beta-binomial distribution.

    For ``loc=0`` it is (n over k) B(k + a, n - k + b) / B(a, b) for k = 0, ..., n; in general that
    at ``k - loc``.

    Args:
        k: the integers at which to evaluate it, of any shape.
        n: the number of trials, an integer.
        a: the first shape parameter of the beta distribution, positive.
        b: the second, positive.
        loc: shift of the distribution along k, an integer.

    Returns:
        Floats of the broadcast shape; 0 off the support's integers, NaN for invalid parameters.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.betabinom.pmf(jnp.array([0, 2, 5]), 5, 2.0, 3.0).round(4))
    [0.1667 0.2381 0.0476]
    """
    return ops.exp(logpmf(k, n, a, b, loc))
