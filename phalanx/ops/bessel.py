"""Bessel functions of the first kind, and modified ones, scaled by e^-|x|."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx.core.primitive import Example, Primitive
from phalanx.ops.basis import mul, neg, sub
from phalanx.ops.compare import eq, select
from phalanx.ops.domains import f32
from phalanx.ops.elementwise import div
from phalanx.ops.elementwise import sign as sign_of
from phalanx.ops.formula import (
    absolute,
    cos,
    exp,
    is_nan,
    isolated,
    polynomial,
    precision,
    sign,
    sin,
    special,
    sqrt,
    summed,
    where,
    within,
)

# ---- modified, of orders 0 and 1 ------------------------------------------------------------


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
    operations=75,
    doc="e^-|x| I₀(x) (DLMF 10.25.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)

bessel_i1e: Primitive = special(
    "bessel_i1e",
    _scaled(1),
    known=[_i1e_slope],
    operations=75,
    doc="e^-|x| I₁(x) (DLMF 10.25.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)


# ---- of orders 0 and 1 ----------------------------------------------------------------------


def _oscillating(order: int) -> Callable[[Any], Any]:
    def formula(x: Any) -> Any:
        """By Bessel's integral, and Hankel's expansion for large x (DLMF 10.9.2, 10.17.3)."""
        size, eps = absolute(x), precision(x) / 4
        turn, count = (25.0, 18) if eps < 1e-10 else (12.0, 9)
        near = size <= turn
        u, v = within(near, x, 1.0), within(~near & (size < math.inf), size, turn)
        sines = np.sin((np.arange(count) + 0.5) * math.pi / (2 * count))

        def term(s: Any, u: Any) -> Any:
            return sin(u * s) * s if order else cos(u * s)

        close = summed(term, sines, of=[u]) / count
        turns = [1, -1, -1, 1]
        terms = [c * turns[k % 4] for k, c in enumerate(_asymptotic_series(order, eps, turn))]
        square = 1.0 / (v * v)
        even, odd = polynomial(square, terms[::2]), polynomial(square, terms[1::2]) / v
        c, s = cos(v), sin(v)
        first, second = (s - c, -(c + s)) if order else (c + s, s - c)
        far = (first * even - second * odd) / (sqrt(v) * math.sqrt(math.pi))
        far = where(size < math.inf, far, 0.0)
        out = where(near, isolated(close), far * sign(x) if order else far)
        return where(is_nan(x), x, out)

    return formula


def _j1_slope(y: Any, x: Any) -> Any:
    zero = eq(x, 0)
    return select(zero, 0.5, sub(bessel_j0(x), div(y, select(zero, 1, x))))


bessel_j0: Primitive = special(
    "bessel_j0",
    _oscillating(0),
    known=[lambda y, x: neg(bessel_j1(x))],
    operations=70,
    doc="J₀(x) (DLMF 10.2.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=15.0)],
)

bessel_j1: Primitive = special(
    "bessel_j1",
    _oscillating(1),
    known=[_j1_slope],
    operations=80,
    doc="J₁(x) (DLMF 10.2.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=15.0)],
)
