"""Student's t distribution."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.searching import where
from phalanx.primitives.incomplete import betaln
from phalanx.scipy.stats.family import ArrayLike, Family
from phalanx.scipy.stats.logs import log1p_square

__all__ = ["logpdf", "pdf"]

family = Family(valid=lambda df: df > 0, typical=(1,))


@family.log_density
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability density function of Student's t distribution.

    It stays finite where ``pdf`` is too small for a float.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive; of inf it is the normal distribution.
        loc: the median.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.t.logpdf(jnp.array([-1.0, 0.0, 2.0]), 3.0).round(4))
    [-1.5763 -1.0009 -2.6955]
    """
    bounded = df < math.inf
    u = where(bounded, df, 1)
    out = -(u + 1) / 2 * log1p_square(x / ops.sqrt(u))
    out = out - betaln(u / 2, 0.5) - 0.5 * ops.log(u)
    return where(bounded, out, -0.5 * x * x - 0.5 * math.log(2 * math.pi))


@one_program
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability density function of Student's t distribution.

    In standard form, for ``loc=0`` and ``scale=1``, it is (1 + x²/df)^(-(df + 1)/2) / (√df B(1/2,
    df/2)). In general it is the standard one at ``(x - loc) / scale``, divided by ``scale``.

    Args:
        x: the points at which to evaluate it, of any shape.
        df: the degrees of freedom, positive; of inf it is the normal distribution.
        loc: the median.
        scale: a factor on the values, positive.

    Returns:
        Floats of the broadcast shape; NaN where a parameter is invalid.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.stats.t.pdf(jnp.array([-1.0, 0.0, 2.0]), 3.0).round(4))
    [0.2067 0.3676 0.0675]
    """
    return ops.exp(logpdf(x, df, loc, scale))
