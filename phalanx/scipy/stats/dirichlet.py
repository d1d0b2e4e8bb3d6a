"""The Dirichlet distribution, of positive numbers that add up to 1."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.joining import concatenate
from phalanx.numpy.promotion import as_array, promote
from phalanx.numpy.searching import where
from phalanx.scipy.special import xlogy
from phalanx.scipy.stats.family import ArrayLike

__all__ = ["logpdf", "pdf"]


@one_program
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Logarithm of the probability density function of the Dirichlet distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points [k, ...], components along the first axis; or [k - 1, ...], where the last
            component is 1 less the sum of the others.
        alpha: the concentration parameters [k], positive.

    Returns:
        Floats [...]; -inf where components are negative or do not add up to 1, NaN where ``alpha``
        is not positive.

    Raises:
        ValueError: ``x`` has neither as many rows as ``alpha`` has elements, nor one less.

    >>> x = jnp.array([0.2, 0.3, 0.5])
    >>> print(scipy.stats.dirichlet.logpdf(x, jnp.array([1.0, 2.0, 3.0])).round(4))
    1.5041
    """
    who = "dirichlet.logpdf"
    x, alpha = (as_array(who, v) for v in promote(who, x, alpha, to=dtypes.to_inexact))
    shape, count = x.shape, alpha.shape
    if len(count) != 1 or shape[:1] not in ((count[0],), (count[0] - 1,)):
        raise ValueError(
            "dirichlet: alpha must be of one dimension, and x have as many rows as it has "
            f"elements, or one less, got x {x.aval} and alpha {alpha.aval}"
        )
    if shape[0] != count[0]:
        x = concatenate([x, 1 - x.sum(0, keepdims=True)], 0)
    alpha = alpha.reshape(count + (1,) * (x.ndim - 1))
    valid = (alpha > 0).all(0)
    alpha = where(alpha > 0, alpha, 1)
    inside = (x >= 0).all(0) & (ops.abs(x.sum(0) - 1) < 10 * _rounding(x))
    usable = where(inside, x, 1)
    norm = ops.lgamma(alpha).sum(0) - ops.lgamma(alpha.sum(0))
    out = where(inside, xlogy(alpha - 1, usable).sum(0) - norm, -math.inf)
    unknown = (x != x).any(0)
    return where(valid & ~unknown, out, math.nan)


def _rounding(x: Array) -> float:
    """By how much a sum of numbers between 0 and 1 may be wrong."""
    return float(dtypes.finfo(x.dtype).eps) * x.shape[0]


@one_program
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Probability density function of the Dirichlet distribution.

    It is Γ(Σ αᵢ) Π xᵢ^(αᵢ - 1) / Γ(αᵢ) of k numbers from 0 to 1 that add up to 1.

    Args:
        x: the points [k, ...], components along the first axis; or [k - 1, ...], where the last
            component is 1 less the sum of the others.
        alpha: the concentration parameters [k], positive.

    Returns:
        Floats [...]; 0 where components are negative or do not add up to 1, NaN where ``alpha`` is
        not positive.

    Raises:
        ValueError: ``x`` has neither as many rows as ``alpha`` has elements, nor one less.

    >>> x = jnp.array([0.2, 0.3, 0.5])
    >>> print(scipy.stats.dirichlet.pdf(x, jnp.array([1.0, 2.0, 3.0])).round(4))
    4.5
    """
    return ops.exp(logpdf(x, alpha))
