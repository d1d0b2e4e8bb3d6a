"""``name``: a value as it is, under a name by which policies of ``checkpoint`` know it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.primitive import Active, Example, Primitive
from phalanx.core.types import ArrayType
from phalanx.ops.basis import f32, i32


def _type(x: ArrayType, *, name: str) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak)


def _linearize(active: Active, x: Any, *, name: str) -> tuple[Any, Callable]:
    return named(x, name=name), lambda t: t  # the name is that of the value, not of its tangent


def _batch(axis: Axis, values: Sequence, dims: Sequence, *, name: str) -> tuple:
    return named(values[0], name=name), dims[0]


named = Primitive(
    "name",
    _type,
    lambda b, x, name: x,
    linearize=_linearize,
    transpose=lambda ct, x, name: [ct],
    batch=_batch,
    doc="x, under a name; no operation",
    examples=[Example((f32(2, 3),), {"name": "a"}), Example((i32(3),), {"name": "a"})],
)
