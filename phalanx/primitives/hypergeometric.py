"""The hypergeometric functions 1F1 and 2F1 of real arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx.core.primitive import Example, Primitive
from phalanx.primitives.basis import add, mul
from phalanx.primitives.domains import f32
from phalanx.primitives.elementwise import div
from phalanx.primitives.formula import (
    Number,
    absolute,
    exp,
    floor,
    is_nan,
    isolated,
    iterate,
    lesser,
    log,
    power,
    primal,
    rounded,
    sign,
    small,
    special,
    together,
    where,
    within,
)
from phalanx.primitives.gamma import ln_gamma

_LIMIT = 20_000  # terms


def _ends(a: Any) -> Number:
    """Whether the series ends, as (a)_k does at zero for a = 0, -1, ..."""
    return (floor(primal(a)) >= a) & (a <= 0.0)


def _sign_of_gamma(x: Any) -> Any:
    down = floor(primal(x))
    odd = down - floor(down * 0.5) * 2.0
    return where(x < 0.0, 1.0 - odd * 2.0, 1.0)


def _ratio_of_gammas(above: list[Any], below: list[Any]) -> Any:
    """Π Γ(above) / Π Γ(below), 0 where one of those below is infinite."""
    total: Any = 0.0
    turns: Any = 1.0
    logarithms = together(ln_gamma, [*above, *below])
    for i, (x, y) in enumerate(zip([*above, *below], logarithms, strict=True)):
        total = total + y * (1.0 if i < len(above) else -1.0)
        turns = _sign_of_gamma(x) * turns
    return exp(total) * turns


def _series(above: list[Any], below: list[Any], z: Any, first: Any) -> tuple[Any, Any]:
    """Σ Π (above)_k / Π (below)_k zᵏ / k!, times ``first``, and z times its derivative."""

    def step(k: Any, term: Any, total: Any, change: Any) -> tuple[Any, Any, Any, Number]:
        bottom = k
        for b in below:
            b = b + (k - 1.0)
            bottom = bottom * where(absolute(primal(b)) <= 0.0, 1.0, b)
        top = z
        for a in above:
            top = top * (a + (k - 1.0))
        term = term * (top / bottom)
        total = total + term
        falling = ~(absolute(primal(top)) >= absolute(primal(bottom)) * 0.95)
        over = absolute(primal(term)) <= 0.0
        return term, total, change + term * k, small(term, total) & (falling | over)

    _, total, change = iterate(step, [first, first, 0.0], _LIMIT)
    return total, change


# ---- 1F1 ------------------------------------------------------------------------------------


def _kummer(a: Any, b: Any, x: Any) -> Any:
    """M(a, b, x), with Kummer's transformation for negative x (DLMF 13.2.39, 13.7.1)."""
    unknown = is_nan(a) | is_nan(b) | is_nan(x)
    ends = _ends(a)
    pole = _ends(b) & ~(ends & (a >= b))
    fine = ~unknown & ~pole
    outside = where(unknown, math.nan, _ones(x) * math.inf)
    a, b, x = within(fine, a, 1.0), within(fine, b, 1.0), within(fine, x, 0.0)
    infinite = absolute(primal(x)) >= math.inf
    x = where(infinite, sign(primal(x)) * 1e30, x)
    turned = (x < 0.0) & ~ends
    u, z = where(turned, b - a, a), where(turned, -x, x)
    p, q = 1.0 - u, b - u
    far = (z > 50.0 + absolute(primal(p * q)) * 2.0) & ~_ends(u)
    v = within(~far, z, 1.0)
    half = exp(where(turned, v * -0.5, 0.0))
    near = isolated(_series([u], [b], v, _ones(v) * half)[0]) * half
    w = within(far, z, 100.0)
    e = exp(where(turned, 0.0, w * 0.5))
    scale = e * (_ratio_of_gammas([b], [u]) * power(w, u - b)) * e
    away = isolated(_asymptotic(p, q, w)) * scale
    out = where(far, away, near)
    limit = where(absolute(primal(out)) > 2.0, primal(out) * math.inf, rounded(primal(out)))
    return where(fine, where(infinite, limit, out), outside)


def _asymptotic(p: Any, q: Any, w: Any) -> Any:
    """Σ (p)_k (q)_k / (k! wᵏ)."""
    inverse = 1.0 / w

    def step(k: Any, term: Any, total: Any) -> tuple[Any, Any, Number]:
        term = term * (p + (k - 1.0)) * (q + (k - 1.0)) * inverse / k
        return term, total + term, small(term, total)

    return iterate(step, [_ones(w), _ones(w)], 60)[1]


def _ones(x: Any) -> Any:
    return where(primal(x) > -math.inf, 1.0, primal(x))


def _kummer_slope(out: Any, a: Any, b: Any, x: Any) -> Any:
    """DLMF 13.3.15."""
    return mul(div(a, b), hyp1f1(add(a, 1), add(b, 1), x))


hyp1f1: Primitive = special(
    "hyp1f1",
    _kummer,
    partials=[None, None, _kummer_slope],
    operations=470,
    doc="1F1(a; b; x) = Σ (a)_k / (b)_k xᵏ / k! (DLMF 13.2.2)",
    examples=[Example((f32(3), np.float32(2.5), np.float32(0.75)), low=0.5, high=3.0, order=1)],
)


# ---- 2F1 ------------------------------------------------------------------------------------


def _gauss(a: Any, b: Any, c: Any, x: Any) -> Any:
    """F(a, b; c; x) for x ≤ 1, from that of arguments in [0, 1] (DLMF 15.8.1)."""
    unknown = is_nan(a) | is_nan(b) | is_nan(c) | is_nan(x)
    ends = _ends(a) | _ends(b)
    pole = _ends(c) & ~((_ends(a) & (a >= c)) | (_ends(b) & (b >= c)))
    origin = absolute(primal(x)) <= 0.0
    fine = ~unknown & (origin | ~pole & (ends | (x <= 1.0)))
    outside = where(unknown, math.nan, _ones(x) * math.inf)
    a, b, c, x = (within(fine, t, 0.5) for t in (a, b, c, x))
    sums = origin | ends & ((x >= 0.0) | (absolute(primal(x)) < 0.5))
    total, _ = _series([within(sums, a, 0.0), b], [c], within(sums, x, 0.0), _ones(x))
    inside = isolated(_inside(*[within(~sums, t, 0.5) for t in (a, b, c, x)]))
    return where(fine, where(sums, isolated(total), inside), outside)


def _inside(a: Any, b: Any, c: Any, x: Any) -> Any:
    """By the transformations of Pfaff and Euler what cancels least, near z = 1 what is finite."""
    swap = primal(a) > b
    a, b = where(swap, b, a), where(swap, a, b)
    turned = x < 0.0
    y = where(turned, 1.0 / (1.0 - within(turned, x, -1.0)), 1.0 - x)
    z = where(turned, -x * y, x)
    q = where(turned, c - b, b)
    s = where(turned, b - a, c - a - b)  # the exponent of y at z = 1
    scale = where(turned, a, 0.0)
    back = _by_euler(a, q, c, y, s)
    p, q = where(back, c - a, a), where(back, c - q, q)
    scale = scale + where(back, s, 0.0)
    s = where(back, -s, s)
    at_1 = (y <= 0.0) & (s > 0.0)
    end = _ratio_of_gammas([c, within(at_1, s, 1.0)], [c - p, c - q])
    u = within(y > 0.0, y, 0.75)
    value = isolated(_continued(p, q, c, within(y > 0.0, z, 0.25), u, s))
    value = where(y > 0.0, value, where(at_1, end, math.inf))
    return where(absolute(primal(scale)) <= 0.0, 1.0, power(y, scale)) * value


def _by_euler(p: Any, q: Any, c: Any, y: Any, s: Any) -> Number:
    """Whether to take (c-p, c-q) for (p, q).

    One of the two functions is finite at z = 1, the other grows as y to the power -|s|. It is
    taken if this is not too large, and clearly fewer terms of its series change their sign.
    """
    here, there = _changes(primal(p), primal(q)), _changes(primal(c - p), primal(c - q))
    grows = s < 0.0
    finite, growing = where(grows, there, here), where(grows, here, there)
    growth = -absolute(primal(s)) * log(where(y > 0.0, primal(y), 1e-30))
    better = (growth < _GROWTH) & (growing < finite * _CLEARLY)
    return grows & ~better | ~grows & better


_CLEARLY = 0.8
_GROWTH = 30.0  # the logarithm of what is not too large


def _changes(p: Any, q: Any) -> Any:
    """About how many terms of the series of (p, q) have another sign than the one before."""
    return absolute(lesser(p, 0.0) - lesser(q, 0.0))


_TURN = 0.125  # the distance from 1 up to which the series at 0 is used


def _continued(p: Any, q: Any, c: Any, z: Any, y: Any, s: Any) -> Any:
    """F(p, q; c; z) by the series at 0, then by steps of half the distance y to the pole at 1."""
    start = where(primal(y) < _TURN, _TURN, y)
    at = where(primal(y) < _TURN, 1.0 - _TURN, z)
    value, change = _series([p, q], [c], at, _ones(z))
    slope = change / where(primal(at) > 0.0, at, 1.0)

    def step(k: Any, y0: Any, value: Any, slope: Any) -> tuple[Any, Any, Any, Number]:
        y1 = where(primal(y) * 2.0 > y0, y, y0 * 0.5)
        value, slope = _moved(p, q, s, y0, y0 - y1, value, slope)
        return y1, value, slope, y1 <= y

    return iterate(step, [start, value, slope], 1_100)[1]


def _moved(p: Any, q: Any, s: Any, y: Any, t: Any, value: Any, slope: Any) -> tuple[Any, Any]:
    """Value and derivative farther by ``t``, by the differential equation (DLMF 15.10.1)."""
    z = where(primal(t) > 0.0, 1.0 - y, 1.0)
    middle = (s - 1.0) + (p + q + 1.0) * y

    def step(k: Any, f: Any, g: Any, total: Any, change: Any) -> tuple[Any, Any, Any, Any, Number]:
        k = k - 1.0
        left = ((y + y - 1.0) * k + middle) * (k + 1.0) * g * t
        right = (k + p) * (k + q) * f * t * t
        new = (right - left) / (z * y * (k + 1.0) * (k + 2.0))
        settled = small(new, total) & small(new * (k + 2.0), change)
        return g, new, total + new, change + new * (k + 2.0), settled

    first = slope * t
    _, _, total, change = iterate(step, [value, first, value + first, first], 200)
    return total, where(primal(t) > 0.0, change / where(primal(t) > 0.0, t, 1.0), slope)


def _gauss_slope(out: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    """DLMF 15.5.1."""
    return mul(div(mul(a, b), c), hyp2f1(add(a, 1), add(b, 1), add(c, 1), x))


hyp2f1: Primitive = special(
    "hyp2f1",
    _gauss,
    partials=[None, None, None, _gauss_slope],
    operations=1000,
    doc="2F1(a, b; c; x) = Σ (a)_k (b)_k / (c)_k xᵏ / k!, continued to x ≤ 1 (DLMF 15.2.1)",
    examples=[
        Example(
            (f32(2), np.float32(1.5), np.float32(2.75), np.float32(0.4)),
            low=0.5, high=2.0, order=1,
        )
    ],
)  # fmt: skip
