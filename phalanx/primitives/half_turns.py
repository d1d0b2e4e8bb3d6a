"""Sines and cosines of angles in half turns: of πx, where x keeps all of its digits.

What is left of x after whole half turns is exact and at most 1/2, so the power series do (DLMF
4.19.1). They take a few multiplications, and no compiler calls a function for each element.
"""

from __future__ import annotations

import math
from typing import Any

from phalanx.core.primitive import Example, Primitive
from phalanx.primitives.domains import f32
from phalanx.primitives.formula import (
    absolute,
    floor,
    polynomial,
    precision,
    rounded,
    special,
    where,
    within,
)


def _terms(x: Any) -> list[float]:
    """The coefficients of sin(πr) / (πr) in r², for |r| ≤ 1/2, exact also of some derivatives."""
    count = 14 if precision(x) < 1e-10 else 8
    return [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(count)]


def sine_of_part(r: Any) -> Any:
    """sin πr, for |r| ≤ 1/2."""
    first, *others = [math.pi * c for c in _terms(r)]
    return r * 3.0 + r * polynomial(r * r, [first - 3.0, *others])  # 3 r loses less than πr does


def cosine_of_part(r: Any) -> Any:
    """cos πr, for |r| ≤ 1/2."""
    return sine_of_part(0.5 - where(r < 0.0, -r, r))


def _parted(x: Any) -> tuple[Any, Any]:
    """What is left of x after whole numbers, and -1 to the power of that number."""
    n = rounded(x)
    odd = n - floor(n * 0.5) * 2.0
    return x - n, 1.0 - odd * 2.0


def sine_of_half_turns(x: Any) -> Any:
    """sin πx, exactly 0 at whole numbers."""
    r, sign = _parted(x)
    return sine_of_part(r) * sign


def cosine_of_half_turns(x: Any) -> Any:
    """cos πx, exactly 0 halfway between whole numbers."""
    r, sign = _parted(x)
    return cosine_of_part(r) * sign


def _sinc(x: Any) -> Any:
    size = absolute(x)
    near, beyond = size <= 0.5, size >= math.inf
    v = within(~beyond, x, 0.0)
    r, sign = _parted(v)
    series = polynomial(r * r, _terms(x))
    away = series * r * sign / within(~near & ~beyond, v, 1.0)
    return where(near, series, where(beyond, 0.0, away))


sinc: Primitive = special(
    "sinc",
    _sinc,
    partials=[None],
    operations=40,
    doc="sin(πx) / (πx), 1 at 0",
    examples=[Example((f32(2, 3),), low=-3.0, high=3.0)],
)
