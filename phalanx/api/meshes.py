"""Meshes over the devices that there are, and the mesh that is meant where none is given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base.config import config, settings
from phalanx.base.errors import DeviceError
from phalanx.base.source import user_location
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import NO_MESH, AxisType, Mesh


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: str | Sequence[str],
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of that shape over the first devices that there are.

    Args:
        axis_shapes: the size of each axis.
        axis_names: the name of each axis.
        axis_types: for each axis, who decides how arrays lie along it; Auto if not given.
        devices: those to use, in the order in which they fill the grid; if not given all, in the
            order of their coordinates where they have some, so that neighbours lie together.

    Raises:
        DeviceError: there are too few devices.
        ValueError: the names do not fit the shape.

    >>> import phalanx
    >>> phalanx.make_mesh((1, 1), ("data", "model"))
    Mesh('data': 1, 'model': 1, devices=[[0]] of cpu)
    """
    return Mesh(create_device_mesh(axis_shapes, devices), axis_names, axis_types)


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, **options: Any
) -> np.ndarray:
    """The devices of a mesh of that shape, as a grid.

    Args:
        mesh_shape: the size of each axis.
        devices: those to use; all if not given.
        **options: accepted; they are about the topology of devices of other kinds.

    Raises:
        DeviceError: there are too few devices.
    """
    shape = tuple(int(n) for n in mesh_shape)
    there = backend().devices() if devices is None else tuple(devices)
    if devices is None:
        there = sorted(there, key=_place)
    if any(n < 1 for n in shape):
        raise ValueError(
            f"make_mesh: every axis has at least one position, got the shape {shape}, at "
            f"{user_location()}"
        )
    count = math.prod(shape)
    if count > len(there):
        raise DeviceError(
            f"make_mesh: a mesh of shape {shape} needs {count} devices, but there are "
            f"{len(there)}, at {user_location()}; make an axis smaller, or give more devices"
        )
    grid = np.empty(count, dtype=object)
    grid[:] = there[:count]
    return grid.reshape(shape)


def _place(device: Any) -> tuple[Any, ...]:
    coordinates = getattr(device, "coords", None) or ()
    return getattr(device, "slice_index", None) or 0, *reversed(coordinates), device.id


class set_mesh:
    """Make ``mesh`` the one that is meant where none is given.

    As a function it holds from then on in the running thread or task; in a ``with`` block until
    that ends.

    Args:
        mesh: a mesh; None for none.

    >>> import phalanx
    >>> with phalanx.set_mesh(phalanx.make_mesh((1,), ("data",))):
    ...     print(phalanx.get_mesh())
    Mesh('data': 1)
    >>> phalanx.get_mesh().empty
    True
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise TypeError(f"set_mesh: a Mesh or None is needed, got {mesh!r}")
        self._block = config.override(mesh=mesh)
        self._block.__enter__()

    def __enter__(self) -> None:
        """The mesh is set already."""

    def __exit__(self, *_: object) -> None:
        self._block.__exit__()


def get_mesh() -> Mesh:
    """The mesh that is meant where none is given; an empty one if there is none."""
    return settings().mesh or NO_MESH
