"""The Cauchy distribution, wrapped around a circle."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["logpdf", "pdf"]

family = Family(low=0, high=2 * math.pi, valid=lambda c: (c > 0) & (c < 1), typical=(0.5,))


@family.log_density
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Logarithm of the probability density function of the wrapped Cauchy distribution, on a
    circle.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: angles in radians from 0 to 2π, of any shape.
        c: the concentration, between 0 and 1.

    Returns:
        Floats of the broadcast shape; -inf outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.wrapcauchy.logpdf(jnp.array([0.0, 1.0, 3.0]), 0.5).round(4))
    [-0.7393 -1.7826 -2.932 ]
    """
    half, rest = ops.sin(x / 2), 1 - c
    size = rest * rest + 4 * c * half * half
    return ops.log(rest) + ops.log1p(c) - math.log(2 * math.pi) - ops.log(size)


@one_program
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Probability density function of the wrapped Cauchy distribution, on a circle.

    It is (1 - c²) / (2π (1 + c² - 2c cos x)) for 0 ≤ x ≤ 2π.

    Args:
        x: angles in radians from 0 to 2π, of any shape.
        c: the concentration, between 0 and 1.

    Returns:
        Floats of the broadcast shape; 0 outside the support, NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.wrapcauchy.pdf(jnp.array([0.0, 1.0, 3.0]), 0.5).round(4))
    [0.4775 0.1682 0.0533]
    """
    return ops.exp(logpdf(x, c))
