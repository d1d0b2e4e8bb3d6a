"""``guarded``: values in lanes that count, and values without derivatives in others.

Lanes that share a device run the same operations, also those of a branch that only some of them
take. What the others make of it is thrown away, but a derivative would multiply it by zero, and
zero times an infinity is not zero. So operands of a branch are guarded: no tangent gets in, and no
cotangent out, where it is not taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import alike
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import broadcast, broadcast_lanes, move
from phalanx.primitives.compare import select
from phalanx.primitives.domains import BOOL, f32, i32


def _type(pred: ArrayType, x: ArrayType, other: ArrayType) -> ArrayType:
    if pred.dtype != BOOL or pred.shape != x.shape[: pred.ndim] or x.shape != other.shape:
        raise TypeError(f"guarded: {pred} does not lead {x} and {other}")
    return ArrayType(x.shape, x.dtype, x.weak)


def _lower(b: Builder, pred: Value, x: Value, other: Value) -> Value:
    if x is other:
        return x
    shape, leading = b.outs[0].shape, tuple(range(b.ins[0].ndim))
    return b.select(b.broadcast_in_dim(pred, shape, leading), x, other)


def _where(pred: Any, t: Any) -> Any:
    """``t`` where ``pred`` holds, zero elsewhere."""
    rank = len(typeof(pred).shape)
    return select(broadcast(pred, shape=typeof(t).shape, dims=tuple(range(rank))), t, 0)


def _linearize(active: Active, pred: Any, x: Any, other: Any) -> Derivative:
    def linear(_: Any, t: Any, __: Any) -> Any:
        return ZERO if t is ZERO else _where(pred, t)

    return guarded(pred, x, other), linear


def _transpose(ct: Any, pred: Any, x: Any, other: Any) -> Cotangents:
    return [
        None,
        _where(pred, ct) if isinstance(x, Linear) else None,
        ZERO if isinstance(other, Linear) else None,
    ]


def _batch(axis: Axis, values: Operands, dims: LaneDims) -> Batched:
    """The lanes of ``pred`` stay in front: those of an axis that it does not know come behind."""
    (pred, x, other), (of_pred, of_x, of_other) = values, dims
    if of_pred is None:
        to = len(typeof(pred).shape)
    else:
        to, pred = 0, move(pred, of_pred, 0)
    placed = [
        broadcast_lanes(v, to, axis.size) if d is None else move(v, d, to)
        for v, d in ((x, of_x), (other, of_other))
    ]
    if x is other:
        placed[1] = placed[0]
    return guarded(pred, *placed), to


guarded = Primitive(
    "guarded",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    dims=alike,
    linear=((1, 2),),
    elements=Elements(copied=True, fused=True),
    doc="x where pred holds, and other, as a constant to derivatives, elsewhere",
    examples=[
        Example((np.bool_(True), f32(2, 3), f32(2, 3))),
        Example((np.array([True, True]), f32(2, 3), f32(2, 3))),
        Example((np.bool_(True), i32(3), i32(3))),
    ],
)
