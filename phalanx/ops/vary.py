"""``pvary``: a value as one that may vary along axes, to types that know of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phalanx.core.axes import Axis, Names
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import ALL, alike
from phalanx.core.primitive import (
    Batched,
    Cotangents,
    Elements,
    Example,
    LaneDims,
    NamedAxes,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import broadcast_lanes, f32, linear_in_first
from phalanx.ops.collective import psum
from phalanx.ops.lanes import named_by_axes


def _type(x: ArrayType, axes: Names) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak)


def _lower(b: Builder, x: Value, axes: Names) -> Value:
    return x


def _transpose(ct: Any, x: Any, axes: Names) -> Cotangents:
    return psum(ct, axes=axes, groups=None)


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, axes: Names) -> Batched:
    (x,), (dim,) = values, dims
    others = tuple([a for a in axes if a != axis.name])
    if dim is None and axis.name in axes:
        x, dim = broadcast_lanes(x, 0, axis.size), 0
    return pvary(x, axes=others) if others else x, dim


def _varies(v: frozenset[Any], axes: Names) -> frozenset[Any]:
    return v | set(axes)


pvary = Primitive(
    "pvary",
    _type,
    _lower,
    linearize=linear_in_first(lambda: pvary),
    transpose=_transpose,
    batch=_batch,
    dims=alike,
    linear=ALL,
    vary=_varies,
    named_axes=NamedAxes(named_by_axes, communicates=False),
    elements=Elements(copied=True, fused=True),
    doc="x, which every position has, as what may vary along axes; no operation",
    examples=[Example((f32(3),), {"axes": ("i",)}, axes=(("i", 4),))],
)


def varying_along(x: Any, axes: Iterable[Any]) -> Any:
    """``x`` as a value of which the type says that it varies along all of ``axes``."""
    missing = frozenset(axes) - typeof(x).varying
    return pvary(x, axes=sorted_axes(missing)) if missing else x


def sorted_axes(axes: Iterable[Any]) -> Names:
    """``axes`` in the order in which programs list them."""
    return tuple(sorted(axes, key=str))
