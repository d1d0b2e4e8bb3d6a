"""Student's t distribution."""

from __future__ import annotations

import math

from phalanx import ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.choice import where
from phalanx.ops.incomplete import betaln
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1p_square

__all__ = ["logpdf", "pdf"]

family = Family(valid=lambda df: df > 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``pdf``.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{logpdf(0.5, 3.0):.4f}"
    '-1.1610'
    """
    bounded = df < math.inf
    u = where(bounded, df, 1)
    out = -(u + 1) / 2 * log1p_square(x / ops.sqrt(u))
    out = out - betaln(u / 2, 0.5) - 0.5 * ops.log(u)
    return where(bounded, out, -0.5 * x * x - 0.5 * math.log(2 * math.pi))


@one_program
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """(1 + x²/df)^(-(df + 1)/2) / (√df B(1/2, df/2)); normal where df is infinite.

    Args:
        x: where: an array, or a number.
        df: the degrees of freedom.
        loc: the point at 0 of the standard distribution, to which it is moved.
        scale: the factor by which the standard distribution is stretched, positive.

    Returns:
        Floating-point numbers, of the shape to which the arguments broadcast.

    >>> f"{pdf(0.5, 3.0):.4f}"
    '0.3132'
    """
    return ops.exp(logpdf(x, df, loc, scale))
