"""Modified Bessel functions of the first kind, scaled by e^-|x|."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from phalanx.core.primitive import Example, Primitive
from phalanx.ops.basis import f32, mul, sub
from phalanx.ops.compare import eq, select
from phalanx.ops.elementwise import div
from phalanx.ops.elementwise import sign as sign_of
from phalanx.ops.formula import (
    absolute,
    exp,
    polynomial,
    precision,
    sign,
    special,
    sqrt,
    where,
    within,
)


def _power_series(order: int, eps: float, end: float) -> list[float]:
    """The coefficients of (x/2)^-ν I_ν(x) in x²/4, to ``eps`` for x ≤ ``end`` (DLMF 10.25.2)."""
    terms = [1 / math.factorial(order)]
    while terms[-1] * (end / 2) ** (2 * len(terms) - 2) > eps:
        k = len(terms)
        terms.append(terms[-1] / (k * (k + order)))
    return terms


def _asymptotic_series(order: int, eps: float, start: float) -> list[float]:
    """The coefficients of √(2πx) e^-x I_ν(x) in 1/x, to ``eps`` from ``start`` (DLMF 10.40.1)."""
    terms = [1.0]
    while abs(terms[-1]) * start ** (1 - len(terms)) > eps:
        k = len(terms)
        terms.append(-terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return terms


def _scaled(order: int) -> Callable[[Any], Any]:
    def formula(x: Any) -> Any:
        z, eps = absolute(x), precision(x) / 4
        turn = -0.55 * math.log(eps)
        near = z <= turn
        u, v = within(near, z, 1.0), within(~near, z, turn)
        half = u * 0.5
        low = polynomial(half * half, _power_series(order, eps, turn)) * exp(-u)
        high = polynomial(1.0 / v, _asymptotic_series(order, eps, turn))
        high = high / (sqrt(v) * math.sqrt(2 * math.pi))
        return where(near, low * half, high) * sign(x) if order else where(near, low, high)

    return formula


def _i1e_slope(y: Any, x: Any) -> Any:
    zero = eq(x, 0)
    quotient = div(y, select(zero, 1, x))
    inner = sub(sub(bessel_i0e(x), mul(sign_of(x), y)), quotient)
    return select(zero, 0.5, inner)


bessel_i0e: Primitive = special(
    "bessel_i0e",
    _scaled(0),
    known=[lambda y, x: sub(bessel_i1e(x), mul(sign_of(x), y))],
    doc="e^-|x| I₀(x) (DLMF 10.25.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)

bessel_i1e: Primitive = special(
    "bessel_i1e",
    _scaled(1),
    known=[_i1e_slope],
    doc="e^-|x| I₁(x) (DLMF 10.25.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)
