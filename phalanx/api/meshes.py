"""Meshes over the devices that there are, and the mesh that is meant where none is given."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base.config import config, settings
from phalanx.base.errors import DeviceCountError, coded
from phalanx.base.source import user_location
from phalanx.core.platforms import resolve_device, sequence_of
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import NO_MESH, AxisType, Mesh
from phalanx.spmd.torus import across_granules, along_torus, granules


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: str | Sequence[str],
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of that shape over the first devices that there are.

    Args:
        axis_sizes: the size of each axis.
        axis_names: the name of each axis.
        axis_types: for each axis, who decides how arrays lie along it; Auto if not given.
        devices: those to use, in the order in which they fill the grid; all if not given. Those
            that lie in a torus, as TPUs do, are arranged along its axes.

    Returns:
        A ``Mesh``.

    Raises:
        DeviceCountError: there are too few devices.
        ValueError: the names do not fit the shape.

    >>> import phalanx
    >>> phalanx.make_mesh((1, 1), ("data", "model"))
    Mesh('data': 1, 'model': 1, devices=[[0]] of cpu)
    """
    return Mesh(_grid(axis_sizes, devices), axis_names, axis_types)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = True,
) -> np.ndarray:
    """All devices as the grid of a mesh of that shape; ``make_mesh`` takes the first ones, too.

    Devices in a torus are arranged so that each axis of the mesh goes along axes of the torus,
    where that can be; others come in their order, those of one process together.

    Args:
        mesh_shape: the size of each axis.
        devices: those to use; all if not given.
        contiguous_submeshes: accepted; blocks of axes of a torus are contiguous.
        allow_split_physical_axes: whether an axis of a torus may serve several of the mesh.

    Returns:
        A NumPy array of devices, of ``mesh_shape``.

    Raises:
        DeviceCountError: there are too few devices, or more than the grid has places.
        ValueError: an axis has no position.

    >>> import phalanx
    >>> create_device_mesh((1, phalanx.device_count())).shape[0]
    1
    """
    del contiguous_submeshes
    grid = _grid(mesh_shape, devices, allow_split_physical_axes)
    there = len(backend().devices() if devices is None else devices)
    if grid.size < there:
        raise DeviceCountError(
            f"create_device_mesh: there are {there} devices, and a grid of shape "
            f"{tuple(mesh_shape)} has {grid.size} places, at {user_location()}; give the devices "
            "to use, devices=, or let phalanx.make_mesh take the first ones"
        )
    return grid


def _grid(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None,
    allow_split_physical_axes: bool = True,
) -> np.ndarray:
    """The first devices, as a grid of that shape."""
    if isinstance(mesh_shape, (int, str)):
        raise TypeError(
            "make_mesh: the shape is a sequence with the size of each axis, as in (4, 2), got "
            f"{mesh_shape!r}, at {user_location()}"
        )
    shape = tuple(int(n) for n in mesh_shape)
    there = backend().devices() if devices is None else sequence_of(devices, "make_mesh")
    if devices is None:
        there = sorted(there, key=_place)
    if any(n < 1 for n in shape):
        raise ValueError(
            f"make_mesh: every axis has at least one position, got the shape {shape}, at "
            f"{user_location()}"
        )
    count = math.prod(shape)
    if count > len(there):
        raise DeviceCountError(
            f"make_mesh: a mesh of shape {shape} needs {count} devices, but there are "
            f"{len(there)}, at {user_location()}; make an axis smaller, or give more devices"
        )
    arranged = along_torus(shape, there[:count], allow_split_physical_axes)
    if arranged is not None:
        return arranged
    grid = np.empty(count, dtype=object)
    grid[:] = there[:count]
    return grid.reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = True,
) -> np.ndarray:
    """The devices of a mesh over slices of TPUs, or over machines, as a grid.

    Axis i has ``mesh_shape[i] * dcn_mesh_shape[i]`` positions, and those of one slice lie together:
    what crosses the slower network is told by ``dcn_mesh_shape``.

    Args:
        mesh_shape: the grid of the devices of one slice.
        dcn_mesh_shape: the grid of slices; as many axes.
        devices: those to use; all if not given.
        process_is_granule: whether the devices of a process take the place of a slice, as GPUs of
            a machine do.
        should_sort_granules_by_key: accepted; slices come by their numbers.
        allow_split_physical_axes: whether an axis of a torus may serve several of the mesh.

    Returns:
        A NumPy array of devices; its shape is the product of the two.

    Raises:
        ValueError: the shapes have different numbers of axes, or there are more or fewer slices.
        DeviceCountError: a slice has too few devices.

    >>> import phalanx
    >>> create_hybrid_device_mesh((phalanx.device_count(), 1), (1, 1)).shape[1]
    1
    """
    del should_sort_granules_by_key
    inner, outer = tuple(map(int, mesh_shape)), tuple(map(int, dcn_mesh_shape))
    if len(inner) != len(outer):
        raise ValueError(
            f"create_hybrid_device_mesh: mesh_shape {inner} and dcn_mesh_shape {outer} must have "
            f"as many axes, at {user_location()}"
        )
    who = "create_hybrid_device_mesh"
    there = backend().devices() if devices is None else sequence_of(devices, who)
    slices = granules(there, _process_of if process_is_granule else _slice_of)
    if len(slices) != math.prod(outer):
        what = "processes" if process_is_granule else "slices"
        raise ValueError(
            f"create_hybrid_device_mesh: dcn_mesh_shape {outer} needs {math.prod(outer)} {what}, "
            f"and there are {len(slices)}, at {user_location()}; with process_is_granule=True the "
            "devices of a process take the place of a slice"
        )
    split = allow_split_physical_axes
    grids = [create_device_mesh(inner, s, allow_split_physical_axes=split) for s in slices]
    return across_granules(inner, outer, grids)


def _place(device: Any) -> tuple[Any, ...]:
    coordinates = getattr(resolve_device(device), "coords", None) or ()
    return _slice_of(device), *reversed(coordinates), device.id


def _slice_of(device: Any) -> int:
    return getattr(resolve_device(device), "slice_index", None) or 0


def _process_of(device: Any) -> int:
    return resolve_device(device).process_index


class set_mesh:
    """Set the current mesh: the one that a ``P`` without a mesh means.

    As a function it holds from then on in the running thread or task; in a ``with`` block until
    that ends. What is made meanwhile, and nobody placed, is whole on each device of the mesh,
    unless a ``default_device`` is set, or some devices are those of other processes.

    Args:
        mesh: a mesh; None for none.

    Raises:
        TypeError: what is given is no mesh.
        ValueError: an axis of it is of type Manual.

    >>> import phalanx
    >>> with phalanx.set_mesh(phalanx.make_mesh((1,), ("data",))):
    ...     print(phalanx.get_mesh())
    ...     print(phalanx.numpy.zeros(3).sharding)
    Mesh('data': 1)
    NamedSharding(mesh=Mesh('data': 1), spec=P())
    >>> phalanx.get_mesh().empty
    True
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise TypeError(f"set_mesh: a Mesh or None is needed, got {mesh!r}")
        if mesh is not None and mesh.manual_axes:
            error = ValueError(
                f"set_mesh: the axes {mesh.manual_axes} of {mesh} are of type Manual, at "
                f"{user_location()}; such are axes inside phalanx.shard_map, which takes them"
            )
            raise coded(error, "manual mesh")
        self._block = config.override(mesh=mesh)
        self._block.__enter__()

    def __enter__(self) -> None:
        """The mesh is set already."""

    def __exit__(self, *_: object) -> None:
        self._block.__exit__()


def get_mesh() -> Mesh:
    """The current mesh, as ``set_mesh`` set it; an empty one if there is none.

    Returns:
        A ``Mesh``.

    >>> import phalanx
    >>> mesh = phalanx.make_mesh((1,), ("i",))
    >>> with phalanx.set_mesh(mesh):
    ...     phalanx.get_mesh() == mesh
    True
    """
    mesh = settings().mesh
    return mesh if isinstance(mesh, Mesh) else NO_MESH
