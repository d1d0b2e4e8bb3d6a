"""The length √(x² + y²), and x / √(x² + y²): by ratios, since squares may be too large or small."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from phalanx.base import dtypes
from phalanx.core.builder import Body, Builder
from phalanx.core.primitive import Example, Primitive
from phalanx.primitives.basis import mul, neg, pointwise
from phalanx.primitives.domains import f32
from phalanx.primitives.elementwise import div
from phalanx.primitives.formula import (
    Number,
    absolute,
    greater,
    lesser,
    sign,
    sqrt,
    unless_nan,
    where,
    within,
)

_EXAMPLES = [Example((f32(2, 3), f32(2, 3)), low=0.25, high=1.0)]


def _written(formula: Callable[[Number, Number], Number]) -> Body:
    def lower(b: Builder, x: Any, y: Any) -> Any:
        return formula(Number(b, x), Number(b, y)).value

    return lower


def _hypot(x: Number, y: Number) -> Number:
    x, y = absolute(x), absolute(y)
    big, small = greater(x, y), lesser(x, y)
    ratio = small / within(big > 0.0, big, 1.0)
    length = where(big <= 0.0, big, big * sqrt(ratio * ratio + 1.0))
    return where((x >= math.inf) | (y >= math.inf), math.inf, unless_nan(length, x, y))


def _hypot_slope(x: Number, y: Number) -> Number:
    u, v = absolute(x), absolute(y)
    big, small = greater(u, v), lesser(u, v)
    alike = small >= big  # both 0, or infinite, too
    ratio = where(alike, 1.0, small / within(~alike, big, 1.0))
    root = 1.0 / sqrt(ratio * ratio + 1.0)
    return unless_nan(sign(x) * where(u < v, ratio * root, root), x, y)


def _bend(x: Any, y: Any) -> Any:
    """y / (x² + y²)."""
    return div(hypot_slope(y, x), hypot(x, y))


hypot: Primitive = pointwise(
    "hypot",
    _written(_hypot),
    on=dtypes.is_floating,
    partials=[
        lambda out, x, y: hypot_slope(x, y),
        lambda out, x, y: hypot_slope(y, x),
    ],
    operations=10,
    doc="√(x² + y²), without overflow",
    examples=_EXAMPLES,
)

hypot_slope: Primitive = pointwise(
    "hypot_slope",
    _written(_hypot_slope),
    on=dtypes.is_floating,
    partials=[
        lambda out, x, y: mul(hypot_slope(y, x), _bend(x, y)),
        lambda out, x, y: neg(mul(out, _bend(x, y))),
    ],
    operations=12,
    doc="x / √(x² + y²), the derivative of hypot by x; 0 at 0",
    examples=_EXAMPLES,
)
