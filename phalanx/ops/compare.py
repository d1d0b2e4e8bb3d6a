"""Comparisons, and choices that follow from them: select, maximum, minimum, clamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.primitive import (
    ZERO,
    Active,
    Cotangents,
    Derivative,
    Example,
    Linear,
    NoRule,
    Operands,
    Primitive,
)
from phalanx.core.types import SCALARS, ArrayType, LiteralType, typeof
from phalanx.ops.basis import (
    BOOL,
    add,
    anything,
    batch_pointwise,
    bools,
    common_type,
    convert,
    f32,
    fit_scalars,
    i32,
    mul,
    pointwise,
    pointwise_lowering,
)
from phalanx.ops.complex import c64

_ORDERED = dtypes.ALL - dtypes.COMPLEXES


def ordered(dtype: Any) -> bool:
    """The domain of dtypes whose elements are smaller and greater: bool and real numbers."""
    return dtype in _ORDERED


_PAIRS = (Example((f32(2, 3), f32(2, 3))), Example((i32(3), i32(3))))
_CONSTANT = "a truth value is piecewise constant"


def _comparison(name: str, direction: str, doc: str, *, order: bool = True) -> Primitive:
    extra = () if order else (Example((c64(3), c64(3))), Example((bools(3), bools(3))))
    return pointwise(
        name,
        lambda b, x, y: b.compare(x, y, direction),
        on=ordered if order else anything,
        result=BOOL,
        partials=_CONSTANT,
        doc=f"{doc}; stablehlo.compare {direction}",
        examples=(*_PAIRS, *extra),
    )


eq = _comparison("eq", "EQ", "x = y", order=False)
ne = _comparison("ne", "NE", "x ≠ y", order=False)
lt = _comparison("lt", "LT", "x < y")
le = _comparison("le", "LE", "x ≤ y")
gt = _comparison("gt", "GT", "x > y")
ge = _comparison("ge", "GE", "x ≥ y")


# ---- maximum and minimum --------------------------------------------------------------------


def greater_share(x: Any, y: Any) -> Any:
    """What ``x`` contributes to max(x, y): 1 where it is greater, 1/2 at ties, else 0."""
    dtype = typeof(x).dtype
    return mul(add(indicator(gt(x, y), dtype), indicator(ge(x, y), dtype)), 0.5)


def indicator(pred: Any, dtype: np.dtype) -> Any:
    """1 where ``pred`` holds, 0 elsewhere."""
    return convert(pred, dtype=dtype, weak=False)


max = pointwise(
    "max",
    lambda b, x, y: b.maximum(x, y),
    on=ordered,
    partials=[
        lambda out, x, y: greater_share(x, y),
        lambda out, x, y: greater_share(y, x),
    ],
    doc="the greater of x and y, which share a derivative at ties; stablehlo.maximum",
    examples=_PAIRS,
)

min = pointwise(
    "min",
    lambda b, x, y: b.minimum(x, y),
    on=ordered,
    partials=[
        lambda out, x, y: greater_share(y, x),
        lambda out, x, y: greater_share(x, y),
    ],
    doc="the smaller of x and y, which share a derivative at ties; stablehlo.minimum",
    examples=_PAIRS,
)


# ---- select ---------------------------------------------------------------------------------


def _select_type(pred: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
    if pred.dtype != BOOL:
        raise TypeError(f"select: the predicate must be bool, got {pred}; compare it first")
    out = common_type("select", (x, y))
    shaped = [t for t in (pred, x, y) if type(t) is not LiteralType]
    if any(t.shape != shaped[0].shape for t in shaped):
        raise TypeError(
            f"select: predicate and branches must have one shape, got {pred}, {x} and {y}; "
            "broadcast them first"
        )
    return out.update(shape=shaped[0].shape) if shaped else out


def _select_prepare(args: Operands) -> Operands:
    pred, x, y = args
    if isinstance(pred, SCALARS):
        pred = np.bool_(pred)
    return (pred, *fit_scalars((x, y)))


def _select_linearize(active: Active, pred: Any, x: Any, y: Any) -> Derivative:
    def linear(_: Any, tx: Any, ty: Any) -> Any:
        return select(pred, 0 if tx is ZERO else tx, 0 if ty is ZERO else ty)

    return select(pred, x, y), linear


def _select_transpose(ct: Any, pred: Any, x: Any, y: Any) -> Cotangents:
    return [
        None,
        select(pred, ct, 0) if isinstance(x, Linear) else None,
        select(pred, 0, ct) if isinstance(y, Linear) else None,
    ]


select = Primitive(
    "select",
    _select_type,
    pointwise_lowering(lambda b, pred, x, y: b.select(pred, x, y)),
    linearize=_select_linearize,
    transpose=_select_transpose,
    batch=batch_pointwise(lambda: select),
    prepare=_select_prepare,
    fused=True,
    doc="x where pred holds, y elsewhere; stablehlo.select",
    examples=[
        Example((bools(2, 3), f32(2, 3), f32(2, 3))),
        Example((bools(3), i32(3), i32(3))),
        Example((bools(3), c64(3), np.complex64(1j))),
    ],
)


# ---- clamp ----------------------------------------------------------------------------------


def _clamp_raised(out: Any, lo: Any, x: Any, hi: Any) -> Any:
    return mul(indicator(lt(x, lo), out.dtype), indicator(eq(lo, out), out.dtype))


clamp = pointwise(
    "clamp",
    lambda b, lo, x, hi: b.clamp(lo, x, hi),
    on=ordered,
    partials=[
        _clamp_raised,
        lambda out, lo, x, hi: indicator(eq(x, out), out.dtype),
        lambda out, lo, x, hi: indicator(max(gt(x, hi), gt(lo, hi)), out.dtype),
    ],
    transpose=NoRule("it is not linear"),
    doc="min(max(x, lo), hi); stablehlo.clamp",
    examples=[
        Example((np.float32(-0.5), f32(2, 3), np.float32(0.5))),
        Example((f32(3), f32(3), f32(3))),
        Example((i32(3), i32(3), i32(3))),
    ],
)
