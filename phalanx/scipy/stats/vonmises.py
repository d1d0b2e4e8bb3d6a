"""The von Mises distribution, on a circle."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.primitives.bessel import bessel_i0e
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["logpdf", "pdf"]

family = Family(valid=lambda kappa: kappa >= 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Logarithm of the probability density function of the von Mises distribution, on a circle.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: angles in radians, of any shape.
        kappa: the concentration, not negative; of 0 all angles are equally likely.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.vonmises.logpdf(jnp.array([0.0, 1.0, 3.0]), 1.5).round(4))
    [-0.8367 -1.5262 -3.8217]
    """
    half = ops.sin(x / 2)
    return -2 * kappa * half * half - ops.log(2 * math.pi * bessel_i0e(kappa))


@one_program
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Probability density function of the von Mises distribution, on a circle.

    It is exp(κ cos x) / (2π I₀(κ)), where I₀ is the modified Bessel function of order 0; as of an
    angle it has the period 2π.

    Args:
        x: angles in radians, of any shape.
        kappa: the concentration, not negative; of 0 all angles are equally likely.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.vonmises.pdf(jnp.array([0.0, 1.0, 3.0]), 1.5).round(4))
    [0.4332 0.2174 0.0219]
    """
    return ops.exp(logpdf(x, kappa))
