"""Bessel functions of the first kind, and modified ones, also scaled by e^-|x|."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from phalanx.core.primitive import Example, Primitive
from phalanx.primitives.basis import add, mul, neg
from phalanx.primitives.domains import f32
from phalanx.primitives.formula import (
    Differentiated,
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


def _scaled(x: Any, order: int) -> Any:
    """e^-|x| I_ν(x), by the two series."""
    z, eps = absolute(x), precision(x) / 4
    turn = -0.55 * math.log(eps)
    near = z <= turn
    u, v = within(near, x, 1.0), within(~near, z, turn)
    half = u * 0.5
    low = polynomial(half * half, _power_series(order, eps, turn)) * exp(-absolute(u))
    for _ in range(order):
        low = low * half
    high = polynomial(1.0 / v, _asymptotic_series(order, eps, turn))
    high = high / (sqrt(v) * math.sqrt(2 * math.pi))
    return where(near, low, high * sign(x) if order % 2 else high)


def _modified(x: Any, order: int) -> Any:
    """I_ν(x), where e^|x| may be too large."""
    root = exp(absolute(x) * 0.5)
    return root * (root * _scaled(x, order))


def _modified_slope(y: Any, x: Any, order: int) -> Any:
    """By the orders beside it (DLMF 10.29.1): nothing cancels, in no derivative."""
    above = bessel_i(x, order=order + 1)
    return mul(add(bessel_i(x, order=order - 1), above), 0.5) if order else above


class _Order(Differentiated):
    order: int


bessel_i: Primitive = special(
    "bessel_i",
    _modified,
    partials=[_modified_slope],
    params=_Order,
    operations=75,
    doc="I_ν(x) of whole ν ≥ 0 (DLMF 10.25.2)",
    examples=[
        Example((f32(2, 3),), {"order": 0}, low=0.5, high=3.0),
        Example((f32(2, 3),), {"order": 1}, low=-3.0, high=3.0),
    ],
)

bessel_i0e: Primitive = special(
    "bessel_i0e",
    partial(_scaled, order=0),
    partials=[None],
    operations=75,
    doc="e^-|x| I₀(x) (DLMF 10.25.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)

bessel_i1e: Primitive = special(
    "bessel_i1e",
    partial(_scaled, order=1),
    partials=[None],
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
        inverse = 1.0 / v
        square = inverse * inverse
        even, odd = polynomial(square, terms[::2]), polynomial(square, terms[1::2]) * inverse
        c, s = cos(v), sin(v)
        first, second = (s - c, -(c + s)) if order else (c + s, s - c)
        far = (first * even - second * odd) / (sqrt(v) * math.sqrt(math.pi))
        far = where(size < math.inf, far, 0.0)
        out = where(near, isolated(close), far * sign(x) if order else far)
        return where(is_nan(x), x, out)

    return formula


bessel_j0: Primitive = special(
    "bessel_j0",
    _oscillating(0),
    partials=[lambda y, x: neg(bessel_j1(x))],
    operations=70,
    doc="J₀(x) (DLMF 10.2.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=15.0)],
)

bessel_j1: Primitive = special(
    "bessel_j1",
    _oscillating(1),
    partials=[None],  # J₀ - J₁/x cancels near 0, in its derivatives
    operations=80,
    doc="J₁(x) (DLMF 10.2.2)",
    examples=[Example((f32(2, 3),), low=0.5, high=15.0)],
)
