"""``name``: a value as it is, under a name by which policies of ``checkpoint`` know it."""

from __future__ import annotations

from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import ALL, alike
from phalanx.core.primitive import (
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


def _type(x: ArrayType, *, name: str) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak)


def _linearize(active: Active, x: Any, *, name: str) -> Derivative:
    return named(x, name=name), lambda t: t  # the name is that of the value, not of its tangent


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, name: str) -> Batched:
    return named(values[0], name=name), dims[0]


def _lower(b: Builder, x: Value, name: str) -> Value:
    return x


def _transpose(ct: Any, x: Any, name: str) -> Cotangents:
    return [ct]


named = Primitive(
    "name",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    dims=alike,
    linear=ALL,
    elements=Elements(copied=True),
    doc="x, under a name; no operation",
    examples=[Example((f32(2, 3),), {"name": "a"}), Example((i32(3),), {"name": "a"})],
)
