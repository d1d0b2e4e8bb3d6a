"""Associated Legendre functions, as spherical harmonics need them."""

from __future__ import annotations

import math
from typing import Any

from phalanx.core.primitive import Example, Primitive
from phalanx.primitives.basis import add, mul, sub
from phalanx.primitives.compare import le, max, select
from phalanx.primitives.domains import f32
from phalanx.primitives.elementwise import abs as array_abs
from phalanx.primitives.elementwise import floor as down
from phalanx.primitives.elementwise import sqrt as root
from phalanx.primitives.formula import (
    Number,
    absolute,
    cos,
    floor,
    greater,
    iterate,
    sin,
    special,
    sqrt,
    where,
)
from phalanx.primitives.shape import zeros_like


def _normalized(n: Any, m: Any, theta: Any) -> Any:
    """Up to the order m along the diagonal, then up in degree (DLMF 14.10.3, 14.7.15)."""
    n, m = floor(n), floor(m)
    k = absolute(m)
    c, s = cos(theta), sin(theta)

    def step(degree: Any, before: Any, last: Any) -> tuple[Any, Any, Number]:
        degree = degree + 0.0 * k
        square, less = degree * degree, (degree - 1.0) * (degree - 1.0)
        diagonal = last * s * sqrt((degree * 2.0 + 1.0) / (degree * 2.0)) * -1.0
        gap = greater(square - k * k, 1.0)
        share = sqrt(greater(less - k * k, 0.0) / greater(less * 4.0 - 1.0, 1.0))
        higher = sqrt((square * 4.0 - 1.0) / gap) * (c * last - share * before)
        new = where(degree <= k, diagonal, higher)
        done = n < degree
        return where(done, before, last), where(done, last, new), n <= degree

    first = where(absolute(c) <= 1.0, 1 / math.sqrt(4 * math.pi), c)
    out = iterate(step, [0.0 * c, first], 100_000)[1]
    odd = k - floor(k * 0.5) * 2.0
    out = where(m < 0.0, (1.0 - odd * 2.0) * out, out)
    return where((k <= n) & (n >= 0.0), out, 0.0 * c)


def _slope(out: Any, n: Any, m: Any, theta: Any) -> Any:
    """By the ladder operators of the order (DLMF 14.10.1, 14.10.2)."""
    n, m = down(n), down(m)
    up, low = mul(sub(n, m), add(add(n, m), 1)), mul(add(n, m), add(sub(n, m), 1))
    higher = mul(root(max(up, 0)), legendre(n, add(m, 1), theta))
    lower = mul(root(max(low, 0)), legendre(n, sub(m, 1), theta))
    inside = le(array_abs(m), n)
    return select(inside, mul(sub(higher, lower), 0.5), 0)


legendre: Primitive = special(
    "legendre",
    _normalized,
    partials=[
        lambda out, n, m, theta: zeros_like(n),
        lambda out, n, m, theta: zeros_like(m),
        _slope,
    ],
    operations=90,
    doc="Y_n^m(θ, 0) of whole n and m: normalized, with the phase of Condon and Shortley "
    "(DLMF 14.30.1)",
    examples=[Example((f32(3), f32(3), f32(3)), low=1.25, high=1.75)],
)
