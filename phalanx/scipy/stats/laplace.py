"""The Laplace distribution."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.searching import where
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["cdf", "logpdf", "pdf"]

family = Family()


@family.log_density
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of the Laplace distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the mean distance from ``loc``, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.laplace.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [-1.6931 -0.6931 -2.6931]
    """
    return -ops.abs(x) - math.log(2)


@one_program
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of the Laplace distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is exp(-|x|) / 2. In general it is the
    standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the mean distance from ``loc``, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.laplace.pdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.1839 0.5    0.0677]
    """
    return ops.exp(logpdf(x, loc, scale))


@family.distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Cumulative distribution function of the Laplace distribution.

    That is the probability of a value less than or equal to x.

    Args:
        x: the points at which to evaluate it, of any shape.
        loc: the mean.
        scale: the mean distance from ``loc``, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(scipy.stats.laplace.cdf(jnp.array([-1.0, 0.0, 2.0])).round(4))
    [0.1839 0.5    0.9323]
    """
    tail = 0.5 * ops.exp(-ops.abs(x))
    return where(x < 0, tail, 1 - tail)
