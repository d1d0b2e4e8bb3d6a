"""Logarithms of probabilities, exact where these are close to 0 or to 1."""

from __future__ import annotations

import math

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.core.types import Array
from phalanx.numpy.searching import where
from phalanx.primitives.incomplete import betaln


def log_of(p: Array, rest: Array) -> Array:
    """log p, where ``rest`` is 1 - p: by that of the two that is the smaller one."""
    likely, never = p > 0.5, p == 0
    below = where(never, -math.inf, ops.log(where(likely | never, 1, p)))
    return where(likely, ops.log1p(-where(likely, rest, 0)), below)


def bounded_exp(x: Array) -> Array:
    """eˣ; what is too large for a float is infinite and does not move."""
    large = x > math.log(float(dtypes.finfo(x.dtype).max))
    return where(large, math.inf, ops.exp(where(large, 0, x)))


def log1mexp(x: Array) -> Array:
    """log(1 - eˣ) for x < 0 (Mächler, Accurately computing log(1 - exp(-|a|)), 2012)."""
    near = x > -math.log(2)
    close = ops.log(-ops.expm1(where(near, x, -1)))
    return where(near, close, ops.log1p(-ops.exp(where(near, -1, x))))


def log1p_square(x: Array) -> Array:
    """log(1 + x²), also where x² is too large for a float."""
    far = ops.abs(x) > float(dtypes.finfo(x.dtype).eps) ** -0.5
    near = where(far, 0, x)
    return where(far, 2 * ops.log(ops.abs(where(far, x, 1))), ops.log1p(near * near))


def log_choose(n: Array, k: Array) -> Array:
    """log (n over k)."""
    return -ops.log1p(n) - betaln(n - k + 1, k + 1)
