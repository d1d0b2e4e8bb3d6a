"""The Hurwitz zeta function; derivatives of digamma are multiples of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx.core.primitive import Example, Primitive
from phalanx.primitives.basis import add, mul, neg
from phalanx.primitives.domains import f32
from phalanx.primitives.formula import (
    floor,
    hurwitz_of,
    is_nan,
    iterate,
    power,
    precision,
    special,
    where,
    within,
)

BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]


def hurwitz(s: int, q: float) -> float:
    """ζ(s, q): 20 terms, and the rest by Euler and Maclaurin (DLMF 25.11.28)."""
    z = q + 20
    rest = z ** (1 - s) / (s - 1) + z**-s / 2
    factor = s * z ** (-s - 1)
    for j, b in enumerate(BERNOULLI, 1):
        rest += factor * b / math.factorial(2 * j)
        factor *= (s + 2 * j - 1) * (s + 2 * j) / (z * z)
    return math.fsum([(q + k) ** -s for k in range(20)]) + rest


def _with_limits(inside: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``inside``, and what is outside of its domain: the pole, infinities, and no number."""

    def zeta(s: Any, q: Any) -> Any:
        whole = (floor(q) >= q) & (q <= 0.0)
        valid = (s > 1.0) & ~whole & ((q > 0.0) | (floor(s) >= s))
        valid = valid & (s < math.inf) & (q < math.inf)
        pole = ((s > 1.0) & whole) | ((s >= 1.0) & (s <= 1.0))
        limit = where((s > 1.0) & (q > 0.0), where(s >= math.inf, _at_infinity(q), 0.0), math.nan)
        outside = where(pole & ~is_nan(q), math.inf, limit)
        return where(valid, inside(within(valid, s, 2.0), within(valid, q, 1.0)), outside)

    return zeta


def _at_infinity(q: Any) -> Any:
    """The limit of q^-s for s to infinity."""
    return where(q > 1.0, 0.0, where(q < 1.0, math.inf, q))


@_with_limits
def _by_series(s: Any, q: Any) -> Any:
    """Terms up to 0, some more, and the rest by Euler and Maclaurin (DLMF 25.11.28).

    What is above 0 is in units of v¹⁻ˢ: terms may underflow where their sum does not.
    """
    terms, corrections = (11, 8) if precision(s) < 1e-10 else (7, 5)  # that is what digits need

    def step(n: Any, v: Any, total: Any) -> tuple[Any, Any, Any]:
        below = v < 0.0
        return where(below, v + 1.0, v), total + where(below, power(v, -s), 0.0), ~below

    v, total = iterate(step, [q, 0.0], 10_000)
    above = 1.0
    for k in range(1, terms):
        above = above + power((v + float(k)) / v, -s)
    z = v + float(terms)
    first = power(z / v, 1.0 - s)
    some = first > 0.0  # where it vanishes the rest may be infinite
    rest = within(some, _euler_maclaurin(s, z, corrections), 0.0)
    return total + power(v, 1.0 - s) * (above / v + where(some, first * rest, 0.0))


def _euler_maclaurin(s: Any, z: Any, corrections: int) -> Any:
    """Σ (z + k)⁻ˢ over k ≥ 0, divided by z¹⁻ˢ."""
    w, total = 1.0 / z, 0.0
    for j in range(corrections, 0, -1):
        factor = ((s + (2 * j - 1.0)) * w) * ((s + 2.0 * j) * w)
        total = total * factor + BERNOULLI[j - 1] / math.factorial(2 * j)
    return total * s * w * w + 0.5 * w + 1.0 / (s - 1.0)


@_with_limits
def _by_differences(s: Any, q: Any) -> Any:
    """XLA's for q > 0. Below, with -q = n - 1 + t, the n terms up to 0 are those of ζ(s, t) that
    ζ(s, t + n) has not, with the sign of (-1)ˢ.

    It has no loop, which would keep accelerators from fusing it, but computes thrice.
    """
    below = q < 0.0
    t = where(below, -q - floor(-q), 1.0)
    missing = hurwitz_of(s, t) - hurwitz_of(s, where(below, 1.0 - q, 1.0))
    odd = s * 0.5 > floor(s * 0.5)
    return hurwitz_of(s, where(below, 1.0 - t, q)) + where(odd, -missing, missing)


def _slope(s: Any, q: Any) -> Any:
    """The derivative by q (DLMF 25.11.17)."""
    following = s + 1 if issubclass(type(s), np.generic) else add(s, 1)  # a number stays one
    return neg(mul(s, zeta(following, q)))


zeta: Primitive = special(
    "zeta",
    _by_series,
    on_accelerators=_by_differences,
    partials=[None, lambda out, s, q: _slope(s, q)],
    operations=140,
    doc="ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, for s > 1 (DLMF 25.11.1)",
    examples=[Example((f32(3), f32(3)), low=1.5, high=3.0)],
)
