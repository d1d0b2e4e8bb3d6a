"""Which device holds which part of an array.

There is one concrete form, ``Sharding``, to which the public names normalise. Arrays are cut
into equal tiles by a grid; devices fill the grid in order, or in a given ``assignment``; a
trailing factor repeats every tile on several devices. Where a size is not divisible the last
tiles are padded, with copies of the last row. Devices are opaque here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from phalanx.base.errors import suggest
from phalanx.core.blocks import Blocks, blocks_of

Index = tuple[slice, ...]
MeshAxes = tuple[tuple[str, int], ...]  # ((name, size), ...), outermost first
Dims = tuple[tuple[str, ...], ...]  # per dimension, the mesh axes that split it, major first


class Sharding:
    """A layout of arrays over devices: ``len(devices) == prod(tiles) * copies``.

    The grid has the shape ``(*tiles, copies)``; its place ``p``, counted row by row, is device
    ``devices[assignment[p]]``, or ``devices[p]`` where ``assignment`` is None. ``tiles`` has no
    trailing ones, so that one sharding serves arrays of any rank. ``committed`` is False for
    the default device of an array whose user did not ask for one.

    Shardings are interned: those that are equal have the same ``plain`` object.

    >>> rows = Sharding(("a", "b", "c", "d"), (2,))
    >>> rows.shard_shape((6, 5)), rows.copies
    ((3, 5), 2)
    >>> rows is Sharding(["a", "b", "c", "d"], (2, 1), (1, 0, 2, 3))
    True
    """

    __slots__ = ("__weakref__", "_hash", "_tile_at", "assignment", "committed", "devices", "tiles")
    _interned: ClassVar[dict[tuple, Sharding]] = {}

    devices: tuple
    tiles: tuple[int, ...]
    assignment: tuple[int, ...] | None
    committed: bool

    def __new__(
        cls,
        devices: Iterable[Any],
        tiles: Sequence[int] = (),
        assignment: Sequence[int] | None = None,
        committed: bool = True,
    ) -> Sharding:
        devices = tuple(devices)
        tiles = _trimmed(tiles)
        _check(devices, tiles, assignment)
        normal = _normal(len(devices), math.prod(tiles), assignment)
        key = (devices, tiles, normal, committed or len(devices) > 1)
        found = Sharding._interned.get(key)
        if found is None:
            found = Sharding._interned.setdefault(key, _make(key))
        return found

    @property
    def plain(self) -> Sharding:
        """The interned object: equal shardings share it."""
        return self

    @property
    def copies(self) -> int:
        """How many devices hold each tile."""
        return len(self.devices) // math.prod(self.tiles)

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self.devices)

    @property
    def device_set(self) -> set:
        """The devices, without their order."""
        return set(self.devices)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return not self.tiles

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach every device."""
        return all(map(_is_local, self.devices))

    @property
    def addressable_devices(self) -> set:
        """The devices that this process can reach."""
        return set(filter(_is_local, self.devices))

    def commit(self) -> Sharding:
        """The same sharding as one that the user asked for."""
        return self if self.committed else Sharding(self.devices)

    def tile_at(self, position: int) -> tuple[int, ...]:
        """The coordinates in the grid of the tile that ``devices[position]`` holds."""
        return self._tile_at[position]

    def position_of(self, place: int) -> int:
        """The position among ``devices`` of the first one that holds tile number ``place``."""
        place *= self.copies
        return place if self.assignment is None else self.assignment[place]

    def blocks(self, shape: Sequence[int]) -> tuple[Blocks, ...]:
        """Per dimension of an array of ``shape``, the blocks into which it is cut.

        Raises:
            ValueError: a dimension is split that is not there.
        """
        shape = tuple(shape)
        if len(self.tiles) > len(shape):
            raise ValueError(
                f"{self} splits {len(self.tiles)} dimensions, but an array of shape {shape} has "
                f"{len(shape)}"
            )
        return blocks_of(shape, self.tiles)

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part of an array of ``shape`` that one device holds, with padding.

        Raises:
            ValueError: a dimension is split that is not there.
        """
        return tuple(b.length for b in self.blocks(shape))

    def padded_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of all parts of an array of ``shape`` together, with padding."""
        return tuple(b.padded for b in self.blocks(shape))

    def real_shape(self, shape: Sequence[int], position: int) -> tuple[int, ...]:
        """The shape of what ``devices[position]`` holds of an array of ``shape``, no padding."""
        return tuple(map(len, self._rows(shape, self.tile_at(position))))

    def _rows(self, shape: Sequence[int], tile: tuple[int, ...]) -> tuple[range, ...]:
        """Per dimension of an array of ``shape`` the rows in ``tile``, without padding."""
        blocks = self.blocks(shape)
        places = (*tile, *(0,) * (len(blocks) - len(tile)))
        return tuple(b.rows(place) for b, place in zip(blocks, places, strict=True))

    def indices(self, shape: tuple[int, ...]) -> tuple[Index, ...]:
        """Per device, in order, the part that it holds as one slice per dimension; no padding."""
        return _indices(self.plain, tuple(shape))

    def devices_indices_map(self, shape: Sequence[int]) -> dict[Any, Index]:
        """Per device the part of an array of ``shape`` that it holds, as slices."""
        return dict(zip(self.devices, self.indices(tuple(shape)), strict=True))

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts on the same devices, in whatever order."""
        if not isinstance(other, Sharding) or self.device_set != other.device_set:
            return False
        mine = dict(zip(self.devices, self._tile_at, strict=True))
        theirs = dict(zip(other.devices, other._tile_at, strict=True))
        return self.tiles == other.tiles and mine == theirs

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Sharding) and self.plain is other.plain)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        order = "" if self.assignment is None else f", assignment={self.assignment}"
        return f"Sharding({list(self.devices)}, tiles={self.tiles}{order})"


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    >>> SingleDeviceSharding("gpu0") == Sharding(["gpu0"])
    True
    """

    __slots__ = ()

    def __new__(cls, device: Any, committed: bool = True) -> Sharding:  # type: ignore[misc]
        return Sharding((device,), (), None, committed)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.devices[0]!r})"


def _trimmed(tiles: Sequence[int]) -> tuple[int, ...]:
    tiles = tuple(tiles)
    while tiles and tiles[-1] == 1:
        tiles = tiles[:-1]
    return tiles


def _check(devices: tuple, tiles: tuple[int, ...], assignment: Sequence[int] | None) -> None:
    if not devices or len(set(devices)) != len(devices):
        raise ValueError(f"Sharding: the devices must be one or more, all distinct, got {devices}")
    if any(t < 1 for t in tiles) or len(devices) % math.prod(tiles):
        raise ValueError(
            f"Sharding: a grid of {tiles} tiles does not divide {len(devices)} devices evenly"
        )
    if assignment is not None and sorted(assignment) != list(range(len(devices))):
        raise ValueError(
            f"Sharding: the assignment must be a permutation of 0..{len(devices) - 1}, "
            f"got {tuple(assignment)}"
        )


def _normal(count: int, parts: int, assignment: Sequence[int] | None) -> tuple[int, ...] | None:
    """The assignment with the copies of each tile in ascending order; None where it is iota."""
    if assignment is None or parts == 1:
        return None
    copies = count // parts
    ordered = tuple(p for i in range(0, count, copies) for p in sorted(assignment[i : i + copies]))
    return None if ordered == tuple(range(count)) else ordered


def _make(key: tuple) -> Sharding:
    devices, tiles, assignment, _ = key
    made = object.__new__(SingleDeviceSharding if len(devices) == 1 else Sharding)
    made.devices, made.tiles, made.assignment, made.committed = key
    made._hash = hash(key)
    copies = len(devices) // math.prod(tiles)
    places = np.argsort(assignment).tolist() if assignment else range(len(devices))
    made._tile_at = tuple(_unravel(place // copies, tiles) for place in places)
    return made


def _unravel(place: int, sizes: Sequence[int]) -> tuple[int, ...]:
    coordinates = []
    for size in reversed(sizes):
        place, rest = divmod(place, size)
        coordinates.append(rest)
    return tuple(reversed(coordinates))


@functools.lru_cache(maxsize=1024)
def _indices(sharding: Sharding, shape: tuple[int, ...]) -> tuple[Index, ...]:
    whole = [b.count == 1 for b in sharding.blocks(shape)]

    def index(tile: tuple[int, ...]) -> Index:
        return tuple(
            slice(None) if unsplit else slice(rows.start, rows.stop)
            for rows, unsplit in zip(sharding._rows(shape, tile), whole, strict=True)
        )

    return tuple(map(index, sharding._tile_at))


def _is_local(device: Any) -> bool:
    client = getattr(device, "client", None)
    return client is None or device.process_index == client.process_index()


# ---- named meshes ----------------------------------------------------------------------------


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
    def flat(self) -> tuple:
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


class PartitionSpec(tuple):
    """Per dimension of an array: the mesh axis or axes that split it, or None.

    >>> PartitionSpec("data", None, ("x", "y"))
    PartitionSpec('data', None, ('x', 'y'))
    """

    __slots__ = ()

    def __new__(cls, *entries: str | Sequence[str] | None) -> PartitionSpec:
        return super().__new__(cls, (_entry(e) for e in entries))

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple:
        return PartitionSpec, tuple(self)

    @property
    def dims(self) -> Dims:
        """Per dimension the tuple of axis names."""
        return tuple(() if e is None else (e,) if isinstance(e, str) else e for e in self)


P = PartitionSpec


def _entry(entry: Any) -> str | tuple[str, ...] | None:
    if entry is None or isinstance(entry, str):
        return entry
    if isinstance(entry, (tuple, list)) and all(isinstance(e, str) for e in entry):
        return tuple(entry) if len(entry) != 1 else entry[0]
    raise TypeError(
        "PartitionSpec: an entry must be None, the name of a mesh axis or a tuple of names, "
        f"got {entry!r}"
    )


class NamedSharding(Sharding):
    """``spec`` says which axes of ``mesh`` split which dimensions; other axes hold copies.

    >>> mesh = Mesh([[0, 1], [2, 3]], ("data", "model"))
    >>> NamedSharding(mesh, PartitionSpec("model")).assignment
    (0, 2, 1, 3)
    """

    __slots__ = ("_plain", "mesh", "spec")

    mesh: Mesh
    spec: PartitionSpec

    def __new__(cls, mesh: Mesh, spec: PartitionSpec) -> NamedSharding:  # type: ignore[misc]
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise TypeError(
                "NamedSharding: needs a Mesh and a PartitionSpec, "
                f"got {type(mesh).__name__} and {type(spec).__name__}"
            )
        plain = from_axes(mesh.flat, mesh.axes, spec.dims, "NamedSharding")
        made = object.__new__(cls)
        made.devices, made.tiles, made.assignment = plain.devices, plain.tiles, plain.assignment
        made.committed, made._hash, made._tile_at = True, plain._hash, plain._tile_at
        made._plain, made.mesh, made.spec = plain, mesh, spec
        return made

    @property
    def plain(self) -> Sharding:
        return self._plain

    def commit(self) -> Sharding:
        return self

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if len(self.spec) > len(tuple(shape)):
            raise ValueError(
                f"{self.spec} has {len(self.spec)} entries, but an array of shape {tuple(shape)} "
                f"has {len(tuple(shape))} dimensions"
            )
        return self._plain.shard_shape(shape)

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"


# ---- shardings in terms of mesh axes -----------------------------------------------------------


def from_axes(
    devices: Sequence[Any], mesh_axes: MeshAxes, dims: Dims, who: str = "sharding"
) -> Sharding:
    """The sharding of ``devices``, a mesh filled row by row, whose dimensions ``dims`` split.

    >>> from_axes(range(6), (("x", 2), ("y", 3)), ((), ("y",))).tiles
    (1, 3)
    """
    sizes = dict(mesh_axes)
    used = [name for names in dims for name in names]
    for name in used:
        if name not in sizes:
            hint = suggest(name, sizes) or f"The axes are {', '.join(map(repr, sizes))}."
            raise ValueError(f"{who}: the mesh has no axis {name!r}. {hint}")
        if used.count(name) > 1:
            raise ValueError(f"{who}: axis {name!r} splits more than one dimension in {dims}")
    names = list(sizes)
    order = [names.index(n) for n in used] + [i for i, n in enumerate(names) if n not in used]
    places = np.arange(len(devices)).reshape(tuple(sizes.values())).transpose(order)
    tiles = tuple(math.prod(sizes[n] for n in split) for split in dims)
    return Sharding(devices, tiles, places.ravel().tolist()).plain


def axes_of(sharding: Sharding, ndim: int, mesh_axes: MeshAxes) -> Dims | None:
    """The inverse of ``from_axes``: per dimension the mesh axes that split it, or None.

    >>> axes_of(Sharding(range(4), (2,)), 2, (("x", 2), ("y", 2)))
    (('x',), ())
    """
    sharding = sharding.plain
    if math.prod(size for _, size in mesh_axes) != len(sharding.devices):
        return None
    found: list[list[tuple[int, str]]] = [[] for _ in range(max(ndim, len(sharding.tiles)))]
    stride = len(sharding.devices)
    for name, size in mesh_axes:
        stride //= size
        if size == 1:
            continue
        steps = [(dim, t) for dim, t in enumerate(sharding.tile_at(stride)) if t]
        if len(steps) > 1:
            return None
        for dim, step in steps:
            found[dim].append((-step, name))
    dims = tuple(tuple(name for _, name in sorted(split)) for split in found)
    exact = from_axes(sharding.devices, mesh_axes, dims)
    same = (exact.tiles, exact.assignment) == (sharding.tiles, sharding.assignment)
    return dims if same else None


def prime_axes(count: int, *shardings: Sharding) -> MeshAxes:
    """A mesh of ``count`` devices with axes of prime size, in which ``shardings`` can be told.

    The order of the factors is the first in which all of them can, else ascending.

    >>> prime_axes(6), prime_axes(6, Sharding(range(6), (3,)))
    ((('m0', 2), ('m1', 3)), (('m0', 3), ('m1', 2)))
    """
    for factors in _orders(count):
        axes = tuple((f"m{i}", f) for i, f in enumerate(factors))
        if all(axes_of(s, len(s.tiles), axes) is not None for s in shardings):
            return axes
    return tuple((f"m{i}", f) for i, f in enumerate(primes(count)))


def primes(n: int) -> tuple[int, ...]:
    """The prime factors of ``n``, ascending."""
    factors, p = [], 2
    while n > 1:
        if n % p:
            p += 1
        else:
            factors.append(p)
            n //= p
    return tuple(factors)


@functools.cache
def _orders(count: int) -> tuple[tuple[int, ...], ...]:
    """The distinct orders of the prime factors of ``count``, the ascending one first."""
    orders = {(): None}
    for p in primes(count):
        orders = {(*o[:i], p, *o[i:]): None for o in orders for i in range(len(o) + 1)}
    return tuple(sorted(orders))
