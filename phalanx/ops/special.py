"""The error function and its inverse, and the zeta function."""

from __future__ import annotations

import math
from typing import Any

from phalanx.base import dtypes
from phalanx.core.primitive import Example, Primitive
from phalanx.ops.basis import add, f32, mul, neg, pointwise
from phalanx.ops.compare import lt, select
from phalanx.ops.elementwise import exp, square
from phalanx.ops.elementwise import log as log_of
from phalanx.ops.formula import (
    floor,
    is_nan,
    iterate,
    log,
    power,
    precision,
    special,
    where,
    within,
)
from phalanx.ops.gamma import BERNOULLI

_SLOPE_AT_0 = 2 / math.sqrt(math.pi)  # of erf


def _bell(x: Any) -> Any:
    """The derivative of erf."""
    return mul(exp(neg(square(x))), _SLOPE_AT_0)


erf = pointwise(
    "erf",
    lambda b, x: b.erf(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: _bell(x)],
    doc="2/√π ∫₀ˣ exp(-t²) dt; chlo.erf",
    examples=[Example((f32(2, 3),))],
)

erfc = pointwise(
    "erfc",
    lambda b, x: b.erfc(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: neg(_bell(x))],
    doc="1 - erf x, exact for large x; chlo.erfc",
    examples=[Example((f32(2, 3),))],
)

erf_inv = pointwise(
    "erf_inv",
    lambda b, x: b.erf_inv(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: mul(exp(square(y)), 1 / _SLOPE_AT_0)],
    doc="the x with erf x = y, for y in [-1, 1]; chlo.erf_inv",
    examples=[Example((f32(2, 3),), low=-0.9, high=0.9)],
)


# ---- zeta -----------------------------------------------------------------------------------


def _hurwitz(s: Any, q: Any) -> Any:
    """Terms up to 0, some more, and the rest by Euler and Maclaurin (DLMF 25.11.28).

    What is above 0 is in units of v¹⁻ˢ: terms may underflow where their sum does not.
    """
    terms, corrections = (11, 8) if precision(s) < 1e-10 else (7, 5)  # that is what digits need
    whole = (floor(q) >= q) & (q <= 0.0)
    valid = (s > 1.0) & ~whole & ((q > 0.0) | (floor(s) >= s)) & (s < math.inf) & (q < math.inf)
    u, v = within(valid, s, 2.0), within(valid, q, 1.0)

    def step(n: Any, v: Any, total: Any) -> tuple[Any, Any, Any]:
        below = v < 0.0
        return where(below, v + 1.0, v), total + where(below, power(v, -u), 0.0), ~below

    v, total = iterate(step, [v, 0.0], 10_000)
    above = 1.0
    for k in range(1, terms):
        above = above + power((v + float(k)) / v, -u)
    z = v + float(terms)
    first = power(z / v, 1.0 - u)
    some = first > 0.0  # where it vanishes the rest may be infinite
    rest = within(some, _euler_maclaurin(u, z, corrections), 0.0)
    inside = total + power(v, 1.0 - u) * (above / v + where(some, first * rest, 0.0))
    pole = ((s > 1.0) & whole) | ((s >= 1.0) & (s <= 1.0))
    limit = where((s > 1.0) & (q > 0.0), where(s >= math.inf, _at_infinity(q), 0.0), math.nan)
    outside = where(pole & ~is_nan(q), math.inf, limit)
    return where(valid, inside, outside)


def _euler_maclaurin(s: Any, z: Any, corrections: int) -> Any:
    """Σ (z + k)⁻ˢ over k ≥ 0, divided by z¹⁻ˢ."""
    w, total = 1.0 / z, 0.0
    for j in range(corrections, 0, -1):
        factor = ((s + (2 * j - 1.0)) * w) * ((s + 2.0 * j) * w)
        total = total * factor + BERNOULLI[j - 1] / math.factorial(2 * j)
    return total * s * w * w + 0.5 * w + 1.0 / (s - 1.0)


def _at_infinity(q: Any) -> Any:
    """The limit of q^-s for s to infinity."""
    return where(q > 1.0, 0.0, where(q < 1.0, math.inf, q))


def _zeta_slope(s: Any, q: Any) -> Any:
    """The derivative by q (DLMF 25.11.17)."""
    return neg(mul(s, zeta(add(s, 1), q)))


zeta: Primitive = special(
    "zeta",
    _hurwitz,
    known=[None, lambda out, s, q: _zeta_slope(s, q)],
    doc="ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, for s > 1 (DLMF 25.11.1)",
    examples=[Example((f32(3), f32(3)), low=1.5, high=3.0)],
)


# ---- entropy --------------------------------------------------------------------------------


def _entropy(x: Any) -> Any:
    """-x log x, which goes to 0 with x."""
    inside = x > 0.0
    return where(x < 0.0, -math.inf, where(inside, -x * log(within(inside, x, 1.0)), 0.0))


def _entropy_slope(x: Any) -> Any:
    """-(1 + log x), by itself: as a sum of two products it is undefined at infinity."""
    return select(lt(x, 0), 0, neg(add(log_of(x), 1)))


entr = special(
    "entr",
    _entropy,
    known=[lambda out, x: _entropy_slope(x)],
    doc="-x log x; 0 at 0, and -inf below",
    examples=[Example((f32(3),), low=0.5, high=3.0)],
)
