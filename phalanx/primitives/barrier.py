"""``optimization_barrier``: values as they are, between which and their uses nothing moves.

And ``rounded_apart``, where that is asked of CPUs alone.
"""

from __future__ import annotations

from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import ALL, each_alike
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType
from phalanx.primitives.domains import f32, i32


def _type(*xs: ArrayType) -> tuple[ArrayType, ...]:
    return tuple(ArrayType(x.shape, x.dtype, x.weak) for x in xs)


def _linearize(active: Active, *xs: Any) -> Derivative:
    return optimization_barrier(*xs), _of_nonzero


def _of_nonzero(*ts: Any) -> Operands:
    """Tangents, or cotangents, behind a barrier of their own."""
    tangents = iter(optimization_barrier(*(t for t in ts if t is not ZERO)))
    return tuple(ZERO if t is ZERO else next(tangents) for t in ts)


def _batch(axis: Axis, values: Operands, dims: LaneDims) -> Batched:
    return optimization_barrier(*values), dims


def _transpose(cts: Operands, *xs: Any) -> Cotangents:
    return _of_nonzero(*cts)


def _type_apart(x: ArrayType) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak)


def _lower_apart(b: Builder, x: Value) -> Value:
    return x


def _lower_apart_on_cpu(b: Builder, x: Value) -> Value:
    return b.optimization_barrier([x])[0]


def _linearize_apart(active: Active, x: Any) -> Derivative:
    return rounded_apart(x), lambda t: t


def _transpose_apart(ct: Any, x: Any) -> Cotangents:
    return [ct]


def _batch_apart(axis: Axis, values: Operands, dims: LaneDims) -> Batched:
    return rounded_apart(values[0]), dims[0]


optimization_barrier = Primitive(
    "optimization_barrier",
    _type,
    lambda b, *xs: b.optimization_barrier(xs),
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    dims=each_alike,
    linear=ALL,
    vary=lambda *xs: xs,
    multi=True,
    elements=Elements(copied=True),
    doc="the operands, each known to what follows only once all are; "
    "stablehlo.optimization_barrier",
    examples=[Example((f32(2, 3), f32(3), i32(2))), Example((f32(3),))],
)

rounded_apart = Primitive(
    "rounded_apart",
    _type_apart,
    _lower_apart,
    lower_on={"cpu": _lower_apart_on_cpu},
    linearize=_linearize_apart,
    transpose=_transpose_apart,
    batch=_batch_apart,
    dims=each_alike,
    linear=ALL,
    elements=Elements(copied=True),
    doc="x; on CPUs, where a product and a sum are rounded together as it suits a loop, no loop "
    "both computes and uses it; stablehlo.optimization_barrier",
    examples=[Example((f32(2, 3),)), Example((i32(3),))],
)
