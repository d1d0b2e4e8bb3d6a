"""Special functions: the error function and its inverse, the gamma family."""

from __future__ import annotations

import math
from typing import Any

from phalanx.base import dtypes
from phalanx.core.builder import Builder
from phalanx.core.primitive import Example
from phalanx.ops.basis import f32, mul, neg, pointwise
from phalanx.ops.elementwise import exp, square

_SLOPE_AT_0 = 2 / math.sqrt(math.pi)  # of erf


def _bell(x: Any) -> Any:
    """The derivative of erf."""
    return mul(exp(neg(square(x))), _SLOPE_AT_0)


def _polygamma_lower(b: Builder, x: Any, order: int) -> Any:
    return b.polygamma(b.constant(order, b.outs[0].dtype, b.outs[0].shape), x)


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

lgamma = pointwise(
    "lgamma",
    lambda b, x: b.lgamma(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: digamma(x)],
    doc="log |Γ(x)|; chlo.lgamma",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)

digamma = pointwise(
    "digamma",
    lambda b, x: b.digamma(x),
    on=dtypes.is_floating,
    partials=[lambda y, x: polygamma(x, order=1)],
    doc="ψ(x), the derivative of log Γ; chlo.digamma",
    examples=[Example((f32(2, 3),), low=0.5, high=3.0)],
)

polygamma = pointwise(
    "polygamma",
    _polygamma_lower,
    on=dtypes.is_floating,
    partials=[lambda y, x, order: polygamma(x, order=order + 1)],
    doc="the derivative of ψ of an order from 1 on; chlo.polygamma",
    examples=[Example((f32(2, 3),), {"order": 1}, low=0.5, high=3.0)],
)
