"""``device_put``: a value as it is, on other devices; its cotangent goes back.

A program may so keep values in the memory of the host while it does not need them.
"""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    Execution,
    LaneDims,
    OnDevices,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType
from phalanx.primitives.domains import f32, i32
from phalanx.run.array import DeviceArray, moved
from phalanx.run.eager import as_array
from phalanx.spmd.constraint import sharding_of_lanes
from phalanx.spmd.memory_kinds import Space
from phalanx.spmd.sharding import Sharding, SingleDeviceSharding
from phalanx.spmd.shardings_of_types import mesh_spec_of

Place = Sharding | Space | None  # None: where it is


def _type(x: ArrayType, *, to: Place, back: Place) -> ArrayType:
    result = ArrayType(x.shape, x.dtype, x.weak)
    spec = mesh_spec_of(to, x.ndim, x.spec) if isinstance(to, Sharding) else x.spec
    return result if spec is None else result.update(spec=spec)


def _linearize(active: Active, x: Any, *, to: Place, back: Place) -> Derivative:
    sharding = x._sig.sharding if isinstance(x, DeviceArray) else back
    return device_put(x, to=to, back=back), lambda t: device_put(t, to=to, back=sharding)


def _transpose(ct: Any, x: Any, to: Place, back: Place) -> Cotangents:
    return [device_put(ct, to=back, back=to)]


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, to: Place, back: Place) -> Batched:
    (x,), (dim,) = values, dims

    def lanes(place: Place) -> Place:
        if not isinstance(place, Sharding) or not place.tiles:
            return place
        return sharding_of_lanes(place, dim, axis.over or ())

    return device_put(x, to=lanes(to), back=lanes(back)), dim


def _lower(b: Builder, x: Value, to: Place, back: Place) -> Value:
    requested = _requested_sharding(to=to)
    x = x if requested is None else b.constrained(x, requested)
    return x if to is None else b.in_memory(x, _memory(to=to))


def _memory(*, to: Place, **_: Any) -> str | None:
    return to.kind if isinstance(to, Space) else to and to.memory


def _requested_sharding(*, to: Place, **_: Any) -> Sharding | None:
    """What is asked of a compiled program: a device alone, without a mesh, says nothing."""
    if not isinstance(to, Sharding) or isinstance(to, SingleDeviceSharding):
        return None
    return to.in_memory(None)


def _run(x: Any, *, to: Place, back: Place) -> DeviceArray:
    array = as_array(x)
    if to is None:
        return array
    if isinstance(to, Space):
        to = array.sharding.with_memory_kind(to.kind)
    to.check_asked(array.shape)
    return moved(array, to)


device_put = Primitive(
    "device_put",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    on_devices=OnDevices(requested_sharding=_requested_sharding, memory=_memory),
    execution=Execution(run=_run),
    elements=Elements(copied=True),
    doc="x on other devices; in a program, a constraint on how it lies over them",
    examples=[
        Example((f32(2, 3),), {"to": None, "back": None}),
        Example((i32(3),), {"to": None, "back": None}),
    ],
)
