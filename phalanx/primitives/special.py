"""The error function and its inverse, and entropies."""

from __future__ import annotations

import math
from typing import Any

from phalanx.base import dtypes
from phalanx.core.builder import Builder
from phalanx.core.primitive import Example, Primitive
from phalanx.core.types import typeof
from phalanx.primitives.basis import add, mul, neg, pointwise, sub
from phalanx.primitives.bits import and_, or_
from phalanx.primitives.compare import eq, ge, gt, indicator, le, lt, select
from phalanx.primitives.domains import f32
from phalanx.primitives.elementwise import div, exp, square
from phalanx.primitives.elementwise import log as log_of
from phalanx.primitives.formula import (
    absolute,
    log,
    polynomial,
    precision,
    special,
    where,
    within,
)

_SLOPE_AT_0 = 2 / math.sqrt(math.pi)  # of erf


def _erf_slope_lower(b: Builder, x: Any) -> Any:
    kind = b.type(x)
    factor = b.constant(_SLOPE_AT_0, kind.dtype, kind.shape)
    return b.multiply(b.exponential(b.negate(b.multiply(x, x))), factor)


erf_slope: Primitive = pointwise(
    "erf_slope",
    _erf_slope_lower,
    on=dtypes.is_floating,
    partials=[lambda y, x: mul(mul(y, x), -2)],  # 2x may be too large where y is 0
    operations=4,
    doc="2/√π exp(-x²), the derivative of erf",
    examples=[Example((f32(2, 3),))],
)

erf = pointwise(
    "erf",
    lambda b, x: b.erf(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: erf_slope(x)],
    doc="2/√π ∫₀ˣ exp(-t²) dt; chlo.erf",
    examples=[Example((f32(2, 3),))],
)

erfc = pointwise(
    "erfc",
    lambda b, x: b.erfc(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: neg(erf_slope(x))],
    operations=60,
    doc="1 - erf x, exact for large x; chlo.erfc",
    examples=[Example((f32(2, 3),))],
)

erf_inv = pointwise(
    "erf_inv",
    lambda b, x: b.erf_inv(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: mul(exp(square(y)), 1 / _SLOPE_AT_0)],
    operations=40,
    doc="the x with erf x = y, for y in [-1, 1]; chlo.erf_inv",
    examples=[Example((f32(2, 3),), low=-0.9, high=0.9)],
)


# ---- entropies ------------------------------------------------------------------------------


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
    partials=[lambda out, x: _entropy_slope(x)],
    operations=10,
    doc="-x log x; 0 at 0, and -inf below",
    examples=[Example((f32(3),), low=0.5, high=3.0)],
)


def _beside(p: Any, q: Any) -> tuple[Any, Any, Any, Any]:
    """Where p ≈ q, there d = (q - p) / p and u = (q - p) / (q + p), and a rest:
    log(q / p) = 2 artanh u = 2 (u + u³ rest)."""
    terms = 16 if precision(p) < 1e-10 else 7
    d = (q - p) / p
    near = (d > -0.45) & (d < 0.85)  # |u| < 0.3
    d = within(near, d, 0.0)
    u = d * (1.0 / (d + 2.0))  # q + p may be too large, as is what XLA makes of d / (d + 2)
    return near, d, u, polynomial(u * u, [1 / (2 * k + 3) for k in range(terms)])


def _log_ratio(p: Any, q: Any) -> Any:
    """log(p / q), also where a float does not hold the quotient."""
    near, _, u, rest = _beside(q, p)
    ratio = p / q
    held = (ratio > 1e-37) & (ratio < math.inf)
    far = where(held, log(within(held, ratio, 1.0)), log(p) - log(q))
    return where(near, 2.0 * (u + u * u * u * rest), far)


log_ratio: Primitive = special(
    "log_ratio",
    _log_ratio,
    partials=[lambda out, p, q: div(1.0, p), lambda out, p, q: div(-1.0, q)],
    operations=40,
    doc="log(p / q) of positive numbers",
    examples=[Example((f32(3), f32(3)), low=0.5, high=3.0)],
)


def _relative_entropy(p: Any, q: Any) -> Any:
    inside = (p > 0.0) & (q > 0.0)
    out = p * _log_ratio(within(inside, p, 1.0), within(inside, q, 1.0))
    return where(inside, out, where((absolute(p) <= 0.0) & (q >= 0.0), absolute(p), math.inf))


def _divergence(p: Any, q: Any) -> Any:
    """p (d - log(1 + d)), which has digits also where p ≈ q, with d = (q - p) / p."""
    inside = (p > 0.0) & (q > 0.0)
    v, w = within(inside, p, 1.0), within(inside, q, 1.0)
    near, d, u, rest = _beside(v, w)
    out = where(near, v * (d * u - 2.0 * u * u * u * rest), v * (_log_ratio(v, w) - 1.0) + w)
    return where(inside, out, where((absolute(p) <= 0.0) & (q >= 0.0), q, math.inf))


def _where_positive(p: Any, q: Any, slope: Any, outside: Any = 0) -> Any:
    return select(or_(le(p, 0), le(q, 0)), outside, slope)


def _divergence_slope(out: Any, p: Any, q: Any) -> Any:
    """1 - p / q, by q."""
    ratio = div(p, q)
    near = and_(gt(ratio, 0.5), lt(ratio, 2))
    inside = select(near, div(sub(q, p), q), sub(1, ratio))
    edge = indicator(and_(eq(p, 0), ge(q, 0)), typeof(inside).dtype)
    return _where_positive(p, q, inside, edge)


rel_entr: Primitive = special(
    "rel_entr",
    _relative_entropy,
    partials=[
        lambda out, p, q: _where_positive(p, q, add(log_ratio(p, q), 1)),
        lambda out, p, q: _where_positive(p, q, neg(div(p, q))),
    ],
    operations=60,
    doc="p log(p / q); 0 where p is 0, and inf where either is negative",
    examples=[Example((f32(3), f32(3)), low=0.5, high=3.0)],
)

kl_div: Primitive = special(
    "kl_div",
    _divergence,
    partials=[lambda out, p, q: _where_positive(p, q, log_ratio(p, q)), _divergence_slope],
    operations=85,
    doc="p log(p / q) - p + q; q where p is 0, and inf where either is negative",
    examples=[Example((f32(3), f32(3)), low=0.5, high=3.0)],
)
