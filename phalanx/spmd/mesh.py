"""Meshes: devices in a grid whose axes have names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ContextDecorator
from typing import Any, ClassVar, NoReturn

import numpy as np
from msgspec import Struct

from phalanx.base.choices import Choice
from phalanx.base.config import config
from phalanx.base.errors import NoDevices
from phalanx.base.recent import InternTable
from phalanx.core.layouts import MeshAxes
from phalanx.spmd.pickled import pickled_devices, unpickled_devices
from phalanx.spmd.picture import Cell, Picture, in_rows
from phalanx.spmd.sharding import is_local, of_several_processes


class AxisType(Choice):
    """Who decides how arrays lie along an axis of a mesh.

    ``Auto``: the compiler, where the user leaves it open. ``Explicit``: types, in which how results
    lie follows from how operands do; what does not follow is refused. ``Manual``: the program,
    which says what each device does.

    >>> AbstractMesh((2,), ("i",)).axis_types
    (Auto,)
    """

    Auto = "Auto"
    Explicit = "Explicit"
    Manual = "Manual"

    def __repr__(self) -> str:
        return self.name


class AbstractDevice(Struct, frozen=True):
    """What kind of device a grid without devices is for.

    Args:
        device_kind: as ``Device.device_kind`` has it.
        num_cores: how many cores a device has; None where nothing is said of them.
        platform: "cpu", "gpu" or "tpu".

    >>> AbstractDevice("TPU v5 lite", 1, "tpu").platform
    'tpu'
    """

    device_kind: str
    num_cores: int | None
    platform: str


class AnyMesh:
    """What meshes with devices and meshes without them share: a grid whose axes have names."""

    __slots__ = ("axis_names", "axis_sizes", "axis_types")

    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[str],
        axis_types: AxisType | Sequence[AxisType] | None,
    ) -> None:
        who = type(self).__name__
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.axis_sizes = tuple(int(n) for n in axis_sizes)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"{who}: the grid has {len(self.axis_sizes)} dimensions, shape {self.axis_sizes}, "
                f"but there are {len(self.axis_names)} axis names: {self.axis_names}"
            )
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"{who}: axis names must be distinct, got {self.axis_names}")
        self.axis_types = _axis_types(axis_types, len(self.axis_names), who)

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis, by name."""
        return dict(self.axes)

    @property
    def shape_tuple(self) -> MeshAxes:
        """``((name, size), ...)``."""
        return self.axes

    @property
    def axes(self) -> MeshAxes:
        """``((name, size), ...)``."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of positions."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there are no positions."""
        return self.size == 0

    @property
    def has_devices(self) -> bool:
        """Whether it is a ``Mesh`` that is not empty."""
        return False

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The names of the axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The names of the axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The names of the axes of type Manual."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all of type Auto."""
        return {*self.axis_types} == {AxisType.Auto}

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all of type Explicit."""
        return {*self.axis_types} == {AxisType.Explicit}

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all of type Manual."""
        return {*self.axis_types} == {AxisType.Manual}

    def _of_type(self, kind: AxisType) -> tuple[str, ...]:
        typed = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, type in typed if type is kind)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The grid without devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    def _types_with(self, changes: Mapping[str, AxisType]) -> tuple[AxisType, ...]:
        for name in changes:
            if name not in self.axis_names:
                raise ValueError(f"{type(self).__name__}: there is no axis {name!r} in {self}")
        typed = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(changes.get(name, kind) for name, kind in typed)

    def _key(self) -> tuple[Any, ...]:
        return self.axes, self.axis_types

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def _spelled(self, *more: str) -> str:
        axes = [f"{name!r}: {size}" for name, size in self.axes]
        others = {t for t in self.axis_types if t is not AxisType.Auto}
        types = [f"axis_types={self.axis_types}"] if others else []
        return f"{type(self).__name__}({', '.join([*axes, *types, *more])})"


class AbstractMesh(AnyMesh):
    """A mesh without devices: the shape of the grid, and the names of its axes.

    Args:
        axis_sizes: the lengths of the grid.
        axis_names: the names of its axes.
        axis_types: the kind of each axis; None: all ``Auto``.
        abstract_device: what kind of device it is for; None where nothing is said.

    >>> mesh = AbstractMesh((2, 4), ("data", "model"))
    >>> mesh.shape, mesh.size
    ({'data': 2, 'model': 4}, 8)
    """

    __slots__ = ("abstract_device",)

    abstract_device: AbstractDevice | None

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[str],
        axis_types: AxisType | Sequence[AxisType] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        super().__init__(axis_sizes, axis_names, axis_types)
        self.abstract_device = abstract_device

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def _refused(self) -> NoReturn:
        """Refused: there are no devices."""
        raise NoDevices(
            f"{self} has names and sizes alone, and no devices; "
            "make_mesh(sizes, names) makes a mesh of those that are here"
        )

    devices = device_ids = local_devices = is_multi_process = property(_refused)

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: str | Sequence[str] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
        abstract_device: Any = None,
    ) -> AbstractMesh:
        """The same mesh with other sizes, other names or other types.

        Args:
            axis_sizes: the sizes of the axes; None for the same.
            axis_names: the names of the axes; None for the same.
            axis_types: the types of the axes; None for the same.
            abstract_device: the kind of the devices; None for the same.

        >>> AbstractMesh((2, 2), ("x", "y")).update((4, 1), ("a", "b")).shape
        {'a': 4, 'b': 1}
        """
        device = self.abstract_device if abstract_device is None else abstract_device
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=device,
        )

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> AbstractMesh:
        """The same mesh, some of whose axes have other types.

        Args:
            name_to_type: the new types, by the names of axes.
        """
        types = self._types_with(name_to_type)
        device = self.abstract_device
        return AbstractMesh(self.axis_sizes, self.axis_names, types, abstract_device=device)

    def _key(self) -> tuple[Any, ...]:
        return *super()._key(), self.abstract_device

    def __repr__(self) -> str:
        device = [] if self.abstract_device is None else [f"{self.abstract_device}"]
        return self._spelled(*device)


class Mesh(AnyMesh, ContextDecorator):
    """A device mesh: a grid of devices with named axes. Meshes that are equal are the same object.

    In a ``with`` block, or the function that it decorates, it is the mesh that is meant where none
    is given, as ``set_mesh`` makes it.

    Args:
        devices: a grid of devices, as an array or nested lists.
        axis_names: one for each dimension of the grid.
        axis_types: for each axis, who decides how arrays lie along it; Auto if not given.

    Raises:
        ValueError: the names do not fit the grid, or a name or a device occurs twice.

    >>> mesh = Mesh([[0, 1, 2], [3, 4, 5]], ("data", "model"))
    >>> mesh.shape, mesh.size
    ({'data': 2, 'model': 3}, 6)
    """

    __slots__ = ("__weakref__", "_hash", "devices")
    _interned: ClassVar[InternTable[Mesh]] = InternTable(256)

    devices: np.ndarray[Any, np.dtype[np.object_]]

    def __new__(
        cls,
        devices: Any,
        axis_names: str | Sequence[str],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        grid = _grid(devices)
        mesh = object.__new__(cls)
        AnyMesh.__init__(mesh, grid.shape, axis_names, axis_types)
        mesh.devices = grid
        key = mesh._key()
        mesh._hash = hash(key)
        same = Mesh._interned[key]
        return same if same is not None else Mesh._interned.add(key, mesh)

    def __init__(
        self,
        devices: Any,
        axis_names: str | Sequence[str],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> None:
        """Nothing is left to do: equal meshes are one object, made once."""

    @property
    def has_devices(self) -> bool:
        return not self.empty

    @property
    def flat(self) -> tuple[Any, ...]:
        """The devices row by row."""
        return tuple(self.devices.flat) if self.axis_names else ()

    @property
    def device_ids(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of each device, in the grid."""
        numbers = [getattr(d, "id", d) for d in self.devices.flat]
        return np.array(numbers, np.int64).reshape(self.axis_sizes)

    @property
    def local_devices(self) -> list[Any]:
        """The devices that this process can reach."""
        return [d for d in self.devices.flat if is_local(d)]

    @property
    def is_multi_process(self) -> bool:
        """Whether the devices belong to several processes."""
        return of_several_processes(self.flat)

    @property
    def local_mesh(self) -> Mesh:
        """The part of the grid that this process can reach.

        Raises:
            ValueError: that is no grid.
        """
        local = np.array([is_local(d) for d in self.devices.flat])
        where = np.argwhere(local.reshape(self.axis_sizes))
        part = tuple(slice(lo, hi + 1) for lo, hi in zip(where.min(0), where.max(0), strict=True))
        if self.devices[part].size != len(where):
            raise ValueError(f"{self}: the devices of this process form no grid of their own")
        return Mesh(self.devices[part], self.axis_names, self.axis_types)

    @property
    def picture(self) -> Picture:
        """The grid with the names of the first two axes; devices along others share a place.

        >>> Mesh([["a", "b"]], ("data", "model")).picture.column_heads
        ('model 0', 'model 1')
        """
        *down, across = self.axes[:2]
        places = self.devices.reshape(math.prod(self.axis_sizes[:2]), -1)
        others = ", ".join(f"{size} along {name!r}" for name, size in self.axes[2:])
        return Picture(
            str(self),
            in_rows([Cell(tuple(place)) for place in places], across[1]),
            f"in each place: {others}" if others else "",
            row_heads=tuple(f"{name} {i}" for name, size in down for i in range(size)),
            column_heads=tuple(f"{across[0]} {i}" for i in range(across[1])),
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<div>{self!r}</div>" if self.empty else self.picture.html()

    def update(
        self,
        devices: Any = None,
        axis_names: str | Sequence[str] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        """The same mesh with other devices, other names or other types.

        Args:
            devices: an array of devices; None for the same.
            axis_names: the names of the axes; None for the same.
            axis_types: the types of the axes; None for the same.

        >>> Mesh([0, 1], "x").update(axis_names="y").axis_names
        ('y',)
        """
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> Mesh:
        """The same mesh, some of whose axes have other types.

        Args:
            name_to_type: the new types, by the names of axes.
        """
        return Mesh(self.devices, self.axis_names, self._types_with(name_to_type))

    def _key(self) -> tuple[Any, ...]:
        return self.axes, self.flat, self.axis_types

    def __hash__(self) -> int:
        return self._hash

    def __copy__(self) -> Mesh:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Mesh:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        devices = pickled_devices(self.flat)
        return _unpickled, (devices, self.axis_sizes, self.axis_names, self.axis_types)

    def __str__(self) -> str:
        return self._spelled()

    def __repr__(self) -> str:
        """The axes and, unless there are many, the numbers of the devices in their grid."""
        axes, kinds = str(self)[:-1], {getattr(d, "platform", "") for d in self.flat}
        if not 0 < self.size <= _SHOWN:
            return f"{axes})"
        kind = f" of {kinds.pop()}" if len(kinds) == 1 and "" not in kinds else ""
        numbers = row([getattr(d, "id", d) for d in self.flat]).reshape(self.axis_sizes).tolist()
        return f"{axes}, devices={numbers}{kind})"

    def __enter__(self) -> Mesh:
        config.override(mesh=self).__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        config.override(mesh=self).__exit__()


_SHOWN = 64  # devices that a repr shows


def _unpickled(
    devices: Sequence[Any],
    sizes: tuple[int, ...],
    names: tuple[str, ...],
    types: tuple[AxisType, ...],
) -> Mesh:
    return Mesh(row(unpickled_devices(devices)).reshape(sizes), names, types) if names else NO_MESH


def mesh_over(grid: AnyMesh, devices: Sequence[Any]) -> Mesh:
    """``grid`` of ``devices``, which fill it row by row.

    >>> mesh_over(AbstractMesh((1, 2), ("x", "y")), ["a", "b"]).flat
    ('a', 'b')
    """
    return Mesh(row(devices).reshape(grid.axis_sizes), grid.axis_names, grid.axis_types)


def row(devices: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.object_]]:
    """The devices as an array, which leaves them as they are."""
    array = np.empty(len(devices), object)
    array[:] = devices
    return array


def _grid(devices: Any) -> np.ndarray[Any, np.dtype[np.object_]]:
    grid = np.array(devices, dtype=object)
    if len(set(grid.flat)) != grid.size:
        raise ValueError("Mesh: a device occurs more than once")
    grid.flags.writeable = False
    return grid


def _axis_types(types: Any, count: int, who: str) -> tuple[AxisType, ...]:
    if types is None:
        return (AxisType.Auto,) * count
    listed = (types,) if isinstance(types, AxisType) else tuple(types)
    if len(listed) != count or not all(isinstance(t, AxisType) for t in listed):
        raise ValueError(f"{who}: axis_types must be {count} values of AxisType, got {types!r}")
    return listed


NO_MESH = Mesh(None, ())
