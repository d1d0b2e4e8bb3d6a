"""The von Mises distribution, on a circle."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.ops.bessel import bessel_i0e
from phalanx.scipy.stats.family import ArrayLike, Family

__all__ = ["logpdf", "pdf"]

family = Family(valid=lambda kappa: kappa >= 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        kappa: how narrow it is.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, 1.5):.4f}"
    '-1.0203'
    """
    half = ops.sin(x / 2)
    return -2 * kappa * half * half - ops.log(2 * math.pi * bessel_i0e(kappa))


@one_program
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """exp(κ cos x) / (2π I₀(κ)).

    Args:
        x: where: an array, or a number.
        kappa: how narrow it is.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, 1.5):.4f}"
    '0.3605'
    """
    return ops.exp(logpdf(x, kappa))
