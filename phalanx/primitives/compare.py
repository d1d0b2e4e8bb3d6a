"""Comparisons, and choices that follow from them: select, maximum, minimum, clamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import alike
from phalanx.core.primitive import (
    ZERO,
    Active,
    Cotangents,
    Derivative,
    Elements,
    Example,
    Linear,
    NoRule,
    Operands,
    Primitive,
)
from phalanx.core.types import SCALARS, ArrayType, LiteralType, typeof
from phalanx.primitives.basis import (
    add,
    batch_pointwise,
    convert,
    fit_scalars,
    mul,
    pointwise,
    pointwise_lowering,
)
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import BOOL, bools, common_type, f32, i32
from phalanx.primitives.sums import zero_beside

_ORDERED = dtypes.ALL - dtypes.COMPLEXES - {dtypes.float0}


def has_value(dtype: Any) -> bool:
    """The domain of every dtype but float0, keys among them."""
    return dtype != dtypes.float0


def ordered(dtype: Any) -> bool:
    """The domain of dtypes whose elements are smaller and greater: bool and real numbers."""
    return dtype in _ORDERED


_PAIRS = (Example((f32(2, 3), f32(2, 3))), Example((i32(3), i32(3))))
_COMPLEX_PAIR = Example((c64(3), c64(3)))
_CONSTANT = "a truth value is piecewise constant"


def _comparison(name: str, direction: str, doc: str, *, order: bool = True) -> Primitive:
    extra = () if order else (_COMPLEX_PAIR, Example((bools(3), bools(3))))
    return pointwise(
        name,
        lambda b, x, y: b.compare(x, y, direction),
        on=ordered if order else has_value,
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


def greater_of(b: Builder, x: Value, y: Value) -> Value:
    """The greater of x and y; of complex numbers by real part, then imaginary part."""
    return _extreme_of(b, x, y, "GT") if _is_pair(b, x) else b.maximum(x, y)


def smaller_of(b: Builder, x: Value, y: Value) -> Value:
    """The smaller of x and y; of complex numbers by real part, then imaginary part."""
    return _extreme_of(b, x, y, "LT") if _is_pair(b, x) else b.minimum(x, y)


def _is_pair(b: Builder, x: Value) -> bool:
    return dtypes.is_complex(b.type(x).dtype)


def _extreme_of(b: Builder, x: Value, y: Value, direction: str) -> Value:
    """x where it is beyond y in lexicographic order, or NaN; y elsewhere."""
    (a, c), (d, e) = ((b.real(z), b.imag(z)) for z in (x, y))
    later = b.and_(b.compare(a, d, "EQ"), b.compare(c, e, direction))
    beyond = b.or_(b.compare(a, d, direction), later)
    beyond = b.and_(beyond, b.compare(y, y, "EQ"))
    return b.select(b.or_(beyond, b.compare(x, x, "NE")), x, y)


def share_of_greater(out: Any, x: Any, y: Any) -> Any:
    """What ``x`` contributes to ``out``, the greater of x and y: all, half at ties, or nothing."""
    return _share(gt, out, x, y)


def share_of_smaller(out: Any, x: Any, y: Any) -> Any:
    """What ``x`` contributes to ``out``, the smaller of x and y: all, half at ties, or nothing."""
    return _share(lt, out, x, y)


def _share(beyond: Primitive, out: Any, x: Any, y: Any) -> Any:
    """By comparing x with y, not with ``out``: where the compiler computes x again, it may round it
    otherwise, so that neither is the extreme. Complex numbers have no order but by that.
    """
    dtype = typeof(out).dtype
    tie = indicator(eq(x, y), dtype)
    if not ordered(dtype):
        return mul(indicator(eq(x, out), dtype), add(mul(tie, -0.5), 1))
    return add(indicator(beyond(x, y), dtype), mul(tie, 0.5))


def indicator(pred: Any, dtype: np.dtype) -> Any:
    """1 where ``pred`` holds, 0 elsewhere."""
    return convert(pred, dtype=dtype, weak=False)


max = pointwise(
    "max",
    greater_of,
    partials=[
        lambda out, x, y: share_of_greater(out, x, y),
        lambda out, x, y: share_of_greater(out, y, x),
    ],
    copied=True,
    operations=(1, 12),
    doc="the greater of x and y, which share a derivative at ties; stablehlo.maximum",
    examples=(*_PAIRS, _COMPLEX_PAIR),
)

min = pointwise(
    "min",
    smaller_of,
    partials=[
        lambda out, x, y: share_of_smaller(out, x, y),
        lambda out, x, y: share_of_smaller(out, y, x),
    ],
    copied=True,
    operations=(1, 12),
    doc="the smaller of x and y, which share a derivative at ties; stablehlo.minimum",
    examples=(*_PAIRS, _COMPLEX_PAIR),
)


# ---- select ---------------------------------------------------------------------------------


def _select_type(pred: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
    if pred.dtype != BOOL:
        raise TypeError(f"select: the predicate must be bool, got {pred}; compare it first")
    out = common_type("select", (x, y))
    shaped = [t for t in (pred, x, y) if type(t) is not LiteralType]
    if any(t.shape != shaped[0].shape for t in shaped):
        raise ShapeError(
            f"select: predicate and branches must have one shape, got {pred}, {x} and {y}; "
            "broadcast them first"
        )
    return out.update(shape=shaped[0].shape) if shaped else out


def _select_prepare(args: Operands) -> Operands:
    pred, x, y = args
    if isinstance(pred, SCALARS):
        pred = np.bool_(pred)
    x, y = fit_scalars((x, y))
    return pred, zero_beside(x, y), zero_beside(y, x)


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
    dims=alike,
    linear=((1, 2),),
    prepare=_select_prepare,
    elements=Elements(copied=True, fused=True, operations=1),
    doc="x where pred holds, y elsewhere; stablehlo.select",
    examples=[
        Example((bools(2, 3), f32(2, 3), f32(2, 3))),
        Example((bools(3), i32(3), i32(3))),
        Example((bools(3), c64(3), np.complex64(1j))),
    ],
)


# ---- clamp ----------------------------------------------------------------------------------


clamp = pointwise(
    "clamp",
    lambda b, lo, x, hi: b.clamp(lo, x, hi),
    on=ordered,
    partials=[
        lambda out, lo, x, hi: indicator(min(lt(x, lo), lt(lo, hi)), out.dtype),
        lambda out, lo, x, hi: indicator(min(gt(x, lo), lt(x, hi)), out.dtype),
        lambda out, lo, x, hi: indicator(max(gt(x, hi), gt(lo, hi)), out.dtype),
    ],
    transpose=NoRule("it is not linear"),
    copied=True,
    doc="min(max(x, lo), hi), with derivative 0 at the bounds; stablehlo.clamp",
    examples=[
        Example((np.float32(-0.5), f32(2, 3), np.float32(0.5))),
        Example((f32(3), f32(3), f32(3))),
        Example((i32(3), i32(3), i32(3))),
    ],
)
