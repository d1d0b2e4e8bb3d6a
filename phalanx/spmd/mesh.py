"""Meshes: devices in a grid whose axes have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.core.region import MeshAxes


class Mesh:
    """Devices in a grid whose axes have names.

    >>> mesh = Mesh([[0, 1, 2], [3, 4, 5]], ("data", "model"))
    >>> mesh.shape, mesh.size
    ({'data': 2, 'model': 3}, 6)
    """

    __slots__ = ("_hash", "axis_names", "devices")

    def __init__(self, devices: Any, axis_names: str | Sequence[str]) -> None:
        grid = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if grid.ndim != len(names):
            raise ValueError(
                f"Mesh: the devices form a grid of {grid.ndim} dimensions, shape {grid.shape}, but "
                f"there are {len(names)} axis names: {names}"
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh: axis names must be distinct, got {names}")
        if len(set(grid.flat)) != grid.size:
            raise ValueError("Mesh: a device occurs more than once")
        grid.flags.writeable = False
        self.devices = grid
        self.axis_names = names
        self._hash = hash((grid.shape, tuple(grid.flat), names))

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis, by name."""
        return dict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The size of each axis, in order."""
        return self.devices.shape

    @property
    def axes(self) -> MeshAxes:
        """``((name, size), ...)``."""
        return tuple(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.devices.size

    @property
    def flat(self) -> tuple[Any, ...]:
        """The devices row by row."""
        return tuple(self.devices.flat)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Mesh) and self.axes == other.axes and self.flat == other.flat
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.axes)
        return f"Mesh({axes})"
