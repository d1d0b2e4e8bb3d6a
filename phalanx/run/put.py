"""``device_put``: a value as it is, on other devices; its cotangent goes back."""

from __future__ import annotations

from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    Active,
    Batched,
    Cotangents,
    Derivative,
    Example,
    LaneDims,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType
from phalanx.ops.basis import f32, i32
from phalanx.run.array import DeviceArray, moved
from phalanx.run.eager import as_array
from phalanx.spmd.sharding import Sharding

Place = Sharding | None  # None: where it is


def _type(x: ArrayType, *, to: Place, back: Place) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak)


def _linearize(active: Active, x: Any, *, to: Place, back: Place) -> Derivative:
    home = x._sig.sharding if isinstance(x, DeviceArray) else back
    return device_put(x, to=to, back=back), lambda t: device_put(t, to=to, back=home)


def _transpose(ct: Any, x: Any, to: Place, back: Place) -> Cotangents:
    return [device_put(ct, to=back, back=to)]


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, to: Place, back: Place) -> Batched:
    (x,), (dim,) = values, dims
    return device_put(x, to=_with_lanes(to, dim), back=_with_lanes(back, dim)), dim


def _with_lanes(place: Place, dim: Any) -> Place:
    """``place`` for an array whose lanes, in dimension ``dim``, stay together."""
    if place is None or dim is None or len(place.tiles) <= dim:
        return place
    tiles = (*place.tiles[:dim], 1, *place.tiles[dim:])
    return Sharding(place.devices, tiles, place.assignment, place.committed)


def _lower(b: Builder, x: Value, to: Place, back: Place) -> Value:
    return x  # inside a compiled function placement is the compiler's affair


def _run(x: Any, *, to: Place, back: Place) -> DeviceArray:
    array = as_array(x)
    if to is None:
        return array
    to.shard_shape(array.shape)  # raises if the array cannot lie so
    return moved(array, to)


device_put = Primitive(
    "device_put",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    run=_run,
    doc="x on other devices; in a program, no operation",
    examples=[
        Example((f32(2, 3),), {"to": None, "back": None}),
        Example((i32(3),), {"to": None, "back": None}),
    ],
)
