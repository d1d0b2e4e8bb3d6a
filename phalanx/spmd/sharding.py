"""Which device holds which part of an array.

There is one concrete form, ``Sharding``, to which the public names normalise. Arrays are cut
into equal tiles by a grid; devices fill the grid in order, or in a given ``assignment``; a
trailing factor repeats every tile on several devices. Where a size is not divisible the last
tiles are padded, with copies of the last row. Devices are opaque here.

Devices may belong to several processes. A *position* counts all devices of a sharding, whoever
can reach them: it is the same number in every process, and what plans and programs speak of. A
*local* number counts the addressable ones alone, those that this process can reach, in the same
order: that is how the parts of an array are numbered that the runtime holds here.
``Sharding.local_positions`` and ``Sharding.local_of`` lead from one to the other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from phalanx.base import jax_arrays
from phalanx.base.errors import DeviceError
from phalanx.base.recent import InternTable, memoized
from phalanx.core.blocks import Blocks, blocks_of
from phalanx.core.layouts import trimmed
from phalanx.spmd.memory_kinds import memory_of, own_memory
from phalanx.spmd.pickled import pickled_devices, unpickled_devices
from phalanx.spmd.picture import Picture, dim_name, drawn_dims, tiles_drawn

Index = tuple[slice, ...]
Key = tuple[tuple[Any, ...], tuple[int, ...], tuple[int, ...] | None, bool, str | None]
Devices = tuple[Any, ...]
_TITLE = 100  # the longest one of a picture


class Sharding:
    """A layout of arrays over devices: ``len(device_list) == prod(tiles) * copies``.

    The grid has the shape ``(*tiles, copies)``; its place ``p``, counted row by row, is device
    ``device_list[assignment[p]]``, or ``device_list[p]`` where ``assignment`` is None. ``tiles``
    has no trailing ones, so that one sharding serves arrays of any rank. ``committed`` is False
    where no user asked for it: on the default device, and of slices read where they lie. Such
    arrays follow others. ``memory`` is the kind of memory, None for the own memory of the devices.

    Shardings are interned: those that are equal are the same object. Two of different names, such
    as those over two meshes, that put the same parts on the same devices have the same ``plain``.

    Args:
        devices: the devices, in order.
        tiles: into how many parts each dimension is cut.
        assignment: which device each place of the grid has; None: in order.
        committed: whether a user asked for it.
        memory: the kind of memory; None for the devices' own.

    >>> rows = Sharding(("a", "b", "c", "d"), (2,))
    >>> rows.shard_shape((6, 5)), rows.copies
    ((3, 5), 2)
    >>> rows is Sharding(["a", "b", "c", "d"], (2, 1), (1, 0, 2, 3))
    True
    """

    __slots__ = (
        "__weakref__", "_plain", "_tile_at", "assignment", "committed",
        "device_list", "local_positions", "memory", "tiles",
    )  # fmt: skip
    _interned: ClassVar[InternTable[Sharding]] = InternTable(1024)

    device_list: Devices
    tiles: tuple[int, ...]
    assignment: tuple[int, ...] | None
    committed: bool
    memory: str | None
    local_positions: tuple[int, ...]  # of the addressable devices, in order
    _plain: Sharding | None  # None: itself
    _tile_at: tuple[tuple[int, ...], ...]

    def __getattr__(self, name: str) -> Any:
        if (described := getattr(type(self), name, None)) is not None:
            return described.__get__(self)  # which has raised an AttributeError in its own words
        words = f"{type(self).__name__!r} object has no attribute {name!r}"
        asks = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]: Python's way to the caller
        by_jax = jax_arrays.is_jax(asks)
        raise AttributeError(
            f"{words}: {jax_arrays.REMEDY}" if by_jax else words, name=name, obj=self
        )

    def __new__(
        cls,
        devices: Iterable[Any],
        tiles: Sequence[int] = (),
        assignment: Sequence[int] | None = None,
        committed: bool = True,
        memory: str | None = None,
    ) -> Sharding:
        devices = tuple(devices)
        tiles = trimmed(tuple(tiles), whole=1)
        _check(devices, tiles, assignment)
        normal = _normal(len(devices), math.prod(tiles), assignment)
        key = (devices, tiles, normal, committed, memory)
        cached = Sharding._interned[key]
        return (
            cached if cached is not None else Sharding._interned.add(key, Sharding._from_key(key))
        )

    @staticmethod
    def _from_key(key: Key) -> Sharding:
        devices, tiles, assignment, committed, memory = key
        sharding = object.__new__(SingleDeviceSharding if len(devices) == 1 else Sharding)
        (
            sharding.device_list,
            sharding.tiles,
            sharding.assignment,
            sharding.committed,
            sharding.memory,
        ) = key
        sharding._plain = None if committed else Sharding(devices, tiles, assignment, memory=memory)
        sharding.local_positions = tuple(i for i, d in enumerate(devices) if is_local(d))
        places = np.argsort(assignment).tolist() if assignment else range(len(devices))
        sharding._tile_at = tuple(_unravel(place // sharding.copies, tiles) for place in places)
        return sharding

    def __copy__(self) -> Sharding:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Sharding:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.tiles, self.assignment, self.committed, self.memory)
        return _unpickled, (pickled_devices(self.device_list), *fields)

    @property
    def plain(self) -> Sharding:
        """The same layout without names, as one that was asked for: all names share this object."""
        return self._plain or self

    @property
    def copies(self) -> int:
        """How many devices hold each tile."""
        return len(self.device_list) // math.prod(self.tiles)

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self.device_list)

    @property
    def device_set(self) -> set[Any]:
        """The devices, without their order."""
        self._check_devices()
        return set(self.device_list)

    def _check_devices(self) -> None:
        """Raise NoDevices over a mesh that has none, whose places are numbered instead."""

    def is_over(self, devices: Iterable[Any]) -> bool:
        """Whether these are the devices, in whatever order; over a mesh without any, none are.

        Args:
            devices: some devices.
        """
        return set(self.device_list) == set(devices)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return not self.tiles

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach every device."""
        self._check_devices()
        return len(self.local_positions) == len(self.device_list)

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process can reach any device."""
        self._check_devices()
        return bool(self.local_positions)

    @property
    def is_whole_here(self) -> bool:
        """Whether the devices of this process have all of an array together."""
        copied = self.is_fully_replicated and self.has_addressable_devices
        return copied or self.is_fully_addressable

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory in which arrays lie, such as "device" or "pinned_host"."""
        return self.memory or own_memory(self.device_list[0])

    def with_memory_kind(self, kind: str | None) -> Self:
        """The same in memory of another kind; None is the own memory of the devices.

        Args:
            kind: the kind, such as "pinned_host"; None for the own memory of the devices.

        Raises:
            ValueError: the devices have no memory of that kind.
        """
        return self.in_memory(memory_of(kind, self.device_list[0]))

    def in_memory(self, memory: str | None) -> Any:
        """The same in ``memory``, of a kind that the devices have; None is their own.

        Args:
            memory: the kind of memory; None for the devices' own.
        """
        return Sharding(self.device_list, self.tiles, self.assignment, self.committed, memory)

    def on(self, device: Any) -> Sharding:
        """How the part lies that ``device`` has, on that device alone.

        Args:
            device: one of its devices.
        """
        return Sharding((device,), memory=self.memory)

    @property
    def local_devices(self) -> Devices:
        """The devices that this process can reach, in order."""
        return tuple(self.device_list[p] for p in self.local_positions)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices that this process can reach."""
        self._check_devices()
        return set(self.local_devices)

    def local_of(self, position: int) -> int:
        """The local number of ``device_list[position]``; ``local_positions`` has it there.

        Args:
            position: the number of a device in ``device_list``.

        Raises:
            DeviceError: it belongs to another process.
        """
        if self.is_fully_addressable:
            return position
        try:
            return self.local_positions.index(position)
        except ValueError:
            device = self.device_list[position]
            raise DeviceError(
                f"{device} at position {position} of {len(self.device_list)} devices belongs to "
                f"process {device.process_index}, and this is process "
                f"{device.client.process_index()}: it reaches {list(self.local_devices)}. Read "
                "x.addressable_shards, or gather the array first"
            ) from None

    def commit(self) -> Sharding:
        """The same sharding as one that the user gave."""
        return self if self.committed else self.plain

    def freed(self) -> Sharding:
        """The same layout as one that nobody asked for, so that it follows others."""
        return Sharding(self.device_list, self.tiles, self.assignment, False, self.memory)

    def tile_at(self, position: int) -> tuple[int, ...]:
        """The coordinates in the grid of the tile that ``device_list[position]`` holds.

        Args:
            position: the number of a device in ``device_list``.
        """
        return self._tile_at[position]

    @property
    def replica_ids(self) -> tuple[int, ...]:
        """Per position, which copy of its tile is there, from 0."""
        return tuple(self._tile_at[:p].count(tile) for p, tile in enumerate(self._tile_at))

    def position_of(self, tile: int) -> int:
        """The position of the first device that holds tile number ``tile``, counted row by row.

        Args:
            tile: the number of the tile.
        """
        place = tile * self.copies
        return place if self.assignment is None else self.assignment[place]

    def blocks(self, shape: Sequence[int]) -> tuple[Blocks, ...]:
        """Per dimension of an array of ``shape``, the blocks into which it is cut.

        Args:
            shape: the shape of the array.

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

    def check_asked(self, shape: Sequence[int]) -> None:
        """Check that an array of ``shape`` may be asked to lie so.

        Args:
            shape: the shape of the array.

        Raises:
            ValueError: it may not.
        """
        self.blocks(shape)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of what one device holds of an array of ``global_shape``, with padding.

        Args:
            global_shape: the shape of an array.

        Raises:
            ValueError: a dimension is split that is not there.
        """
        return tuple(b.length for b in self.blocks(global_shape))

    def padded_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of all parts of an array of ``shape`` together, with padding.

        Args:
            shape: the shape of the array.
        """
        return tuple(b.padded for b in self.blocks(shape))

    def real_shape(self, shape: Sequence[int], position: int) -> tuple[int, ...]:
        """The shape of what ``device_list[position]`` has of an array of ``shape``, unpadded.

        Args:
            shape: the shape of the array.
            position: the number of a device in ``device_list``.
        """
        return tuple(map(len, self.rows(shape, position)))

    def rows(self, shape: Sequence[int], position: int) -> tuple[range, ...]:
        """Per dimension of an array of ``shape`` the rows that ``device_list[position]`` holds.

        Args:
            shape: the shape of the array.
            position: the number of a device in ``device_list``.
        """
        blocks, tile = self.blocks(shape), self.tile_at(position)
        places = (*tile, *(0,) * (len(blocks) - len(tile)))
        return tuple(b.rows(place) for b, place in zip(blocks, places, strict=True))

    def indices(self, shape: tuple[int, ...]) -> tuple[Index, ...]:
        """Per device, in order, the part that it holds as one slice per dimension; no padding.

        Args:
            shape: the shape of the array.
        """
        return _indices(self, tuple(shape))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """Per device the part of an array of ``global_shape`` that it holds, as slices.

        Args:
            global_shape: the shape of an array.
        """
        self._check_devices()
        return dict(zip(self.device_list, self.indices(tuple(global_shape)), strict=True))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The same for the devices that this process can reach.

        Args:
            global_shape: the shape of an array.
        """
        self._check_devices()
        indices = self.indices(tuple(global_shape))
        return {self.device_list[p]: indices[p] for p in self.local_positions}

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        """Whether both put the same parts on the same devices, in whatever order.

        Args:
            other: another sharding.
            ndim: how many dimensions the array has.
        """
        if not isinstance(other, Sharding) or self.tiles != other.tiles:
            return False
        if self.memory != other.memory:
            return False
        mine = dict(zip(self.device_list, self._tile_at, strict=True))
        theirs = dict(zip(other.device_list, other._tile_at, strict=True))
        return mine == theirs

    def overlaps(self, other: Sharding) -> bool:
        """Whether both put the same part of an array on some device.

        Args:
            other: another sharding.
        """
        if self.tiles != other.tiles or self.memory != other.memory:
            return False
        theirs = zip(other.device_list, other._tile_at, strict=True)
        return not set(zip(self.device_list, self._tile_at, strict=True)).isdisjoint(theirs)

    def __repr__(self) -> str:
        order = "" if self.assignment is None else f", assignment={self.assignment}"
        return f"Sharding({list(self.device_list)}, tiles={self.tiles}{order}{self._memory_text})"

    def _repr_html_(self) -> str:
        """What a notebook shows: which part of an array each device has."""
        down, across = drawn_dims(self.tiles)

        def lines(position: int) -> tuple[str, ...]:
            tile = self.tile_at(position)
            parts = [(dim_name(d), tile[d] + 1, self.tiles[d]) for d in (*down, *across)]
            return tuple([f"{name}: part {i} of {n}" for name, i, n in parts]) or ("all of it",)

        title = f"{type(self).__name__} on {len(self.device_list)} devices"
        title = repr(self) if len(repr(self)) < _TITLE else title
        return Picture(title, tiles_drawn(self, lines)).html()

    @property
    def _memory_text(self) -> str:
        """What a repr says of the memory, if it is not the devices' own."""
        return f", memory_kind={self.memory!r}" if self.memory else ""


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
        device: the device.
        committed: whether a user asked for it.
        memory_kind: the kind of memory; None for the device's own.

    >>> SingleDeviceSharding("gpu0") == Sharding(["gpu0"])
    True
    """

    __slots__ = ()

    def __new__(  # type: ignore[misc]
        cls, device: Any, committed: bool = True, *, memory_kind: str | None = None
    ) -> Sharding:
        return Sharding((device,), (), None, committed, memory_of(memory_kind, device))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device_list[0]!r}{self._memory_text})"


def _unpickled(devices: Sequence[Any], *fields: Any) -> Sharding:
    return Sharding(unpickled_devices(devices), *fields)


def _check(devices: Devices, tiles: tuple[int, ...], assignment: Sequence[int] | None) -> None:
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


def _unravel(place: int, sizes: Sequence[int]) -> tuple[int, ...]:
    coordinates: list[int] = []
    for size in reversed(sizes):
        place, rest = divmod(place, size)
        coordinates.append(rest)
    return tuple(reversed(coordinates))


@memoized(1024)
def _indices(sharding: Sharding, shape: tuple[int, ...]) -> tuple[Index, ...]:
    unsplit_dims = [b.count == 1 for b in sharding.blocks(shape)]

    def index(position: int) -> Index:
        return tuple(
            slice(None) if unsplit else slice(rows.start, rows.stop)
            for rows, unsplit in zip(sharding.rows(shape, position), unsplit_dims, strict=True)
        )

    return tuple(map(index, range(len(sharding.device_list))))


def of_several_processes(devices: Sequence[Any]) -> bool:
    """Whether ``devices`` belong to several processes, which run a program together."""
    return len({getattr(d, "process_index", 0) for d in devices}) > 1


def is_local(device: Any) -> bool:
    """Whether this process can reach ``device``."""
    client = getattr(device, "client", None)
    return client is None or device.process_index == client.process_index()
