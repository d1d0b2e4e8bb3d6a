"""Arrays with data as ones that lie over a mesh as types say."""

from __future__ import annotations

from typing import Any

from phalanx.base.config import settings
from phalanx.core.mesh_spec import MeshSpec
from phalanx.run.array import DeviceArray, moved
from phalanx.run.constrain import check_fits, constrain
from phalanx.run.eager import as_array
from phalanx.spmd.constraint import resolve_open_dims
from phalanx.spmd.mesh import AxisType
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.naming import in_full
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.shardings_of_types import sharding_in_type


def reshard_array(x: Any, spec: MeshSpec | None) -> DeviceArray:
    """``x``, whose type has this ``spec``; None: the same, its axes being Auto.

    Where neither the array nor a mesh that is set tells on which devices, it stays where it is.
    """
    array = as_array(x)
    sharding = array.sharding
    if spec is None:
        array = summed(array)
        return moved(array, _of_auto_axes(array.sharding))
    requested = sharding_in_type(spec)
    meshes = [settings().mesh, sharding.mesh if isinstance(sharding, NamedSharding) else None]
    with_devices = [m for m in meshes if m is not None and m.has_devices]
    mesh = next((m for m in with_devices if m.axes == requested.mesh.axes), None)
    if mesh is None:
        return array
    requested = requested.update(mesh=mesh.update(axis_types=requested.mesh.axis_types))
    if spec.unreduced or array.aval.unreduced:
        return constrain(array, sharding=requested)
    target = in_full(resolve_open_dims(requested, sharding, array.ndim), array.ndim)
    check_fits(array.aval, target, "reshard")
    return moved(array, target)


def summed(array: DeviceArray) -> DeviceArray:
    """``array``, where its sum is taken if that was still to be done."""
    sharding = array.sharding
    if not isinstance(sharding, NamedSharding) or not sharding.spec.unreduced:
        return array
    return constrain(array, sharding=sharding.update(spec=sharding.spec.update(unreduced=set())))


def _of_auto_axes(sharding: Sharding) -> Sharding:
    if not isinstance(sharding, NamedSharding):
        return sharding
    auto = dict.fromkeys(sharding.mesh.axis_names, AxisType.Auto)
    spec = sharding.spec.update(reduced=set())  # of which no type tells along Auto axes
    return sharding.update(mesh=sharding.mesh.update_axis_types(auto), spec=spec)
