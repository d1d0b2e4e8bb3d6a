"""Reading rows and whole blocks of arrays over several devices where they lie."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from phalanx.base.keys import key_of
from phalanx.base.kinds import class_of
from phalanx.base.recent import Recent
from phalanx.core.blocks import Blocks
from phalanx.primitives.basis import reshape
from phalanx.run.array import DeviceArray, Signature, assemble
from phalanx.spmd.naming import of_part
from phalanx.spmd.sharding import Sharding


class _Along(Struct, frozen=True):
    """What is read of a dimension: of the blocks ``tiles`` the part ``within``, None for all.

    ``length`` is how many rows that is together; None for a single row, without the dimension.
    """

    tiles: range
    within: int | slice | None
    length: int | None


class _Reading(Struct, frozen=True):
    """How arrays of one signature are read at one index.

    Attributes:
        places: of the local devices that have it, in the order of its tiles; none where more has
            to be moved.
        part: makes what is read there of what a device holds.
        sig: of the result, where there are ``places``.
    """

    places: tuple[int, ...]
    part: Callable[[DeviceArray], Any]
    sig: Signature


_known: Recent[_Reading] = Recent(4096)


def read(x: DeviceArray, index: Any) -> Any:
    """``x[index]`` where only some of the devices have it, and nothing has to be moved.

    So it is with a row of a dimension that is cut, with a part of one block and with whole blocks.
    The result stays where it is, free to follow others: nobody chose where a row is read. Of
    copies the first are taken.

    Returns:
        An array, or NotImplemented where that is not so, where devices do not compute in the memory
        that has it, or where other processes have parts: what one of them has to take part in, all
        do.
    """
    key = x._sig, key_of(index)
    try:
        reading = _known[key]
        if reading is None:
            reading = _known[key] = _planned(x._sig, index)
    except TypeError:  # an index that cannot be hashed
        reading = _planned(x._sig, index)
    if not reading.places:
        return NotImplemented
    parts = [reading.part(x._local_block(place)) for place in reading.places]
    if len(parts) == 1:
        return DeviceArray(parts[0]._raw, reading.sig)
    devices = x._sig.sharding.local_devices
    by_device = dict(zip([devices[place] for place in reading.places], parts, strict=True))
    kind, sharding = reading.sig.type, reading.sig.sharding
    return assemble([by_device[device] for device in sharding.device_list], kind, sharding)


def _planned(sig: Signature, index: Any) -> _Reading:
    sharding, shape = sig.sharding, sig.type.shape
    moved = _Reading((), _whole, sig)
    entries: tuple[Any, ...] = index if class_of(index) is tuple else (index,)
    if not sharding.is_fully_addressable or sharding.memory or len(entries) > len(shape):
        return moved
    entries = (*entries, *[slice(None)] * (len(shape) - len(entries)))
    read = tuple(map(_along, entries, shape, sharding.blocks(shape)))
    if None in read or not _fewer(read, sharding):  # type: ignore[arg-type]
        return moved
    return _reading(sig, read)  # type: ignore[arg-type]


def _along(entry: Any, size: int, blocks: Blocks) -> _Along | None:
    """What ``entry`` reads of a dimension in ``blocks``; None if it has to be moved or is wrong."""
    if isinstance(entry, bool):
        return None
    try:
        if isinstance(entry, slice):
            start, stop, step = entry.indices(size)
            return _rows(start, stop, blocks) if step == 1 else None
        row = operator.index(entry)
    except (TypeError, ValueError):
        return None
    if not -size <= row < size:
        return None
    tile, place = blocks.find(row % size)
    return _Along(range(tile, tile + 1), place, None)


def _rows(start: int, stop: int, blocks: Blocks) -> _Along | None:
    length = stop - start
    if length <= 0:
        return None
    if length == blocks.size:
        return _Along(range(blocks.count), None, length)
    first = start // blocks.length
    if (stop - 1) // blocks.length == first:
        begin = start - first * blocks.length
        within = None if length == blocks.length else slice(begin, begin + length)
        return _Along(range(first, first + 1), within, length)
    tiles = blocks.covering(start, stop)
    same = bool(tiles) and Blocks(length, len(tiles)).length == blocks.length
    return _Along(tiles, None, length) if same else None


def _fewer(read: tuple[_Along, ...], sharding: Sharding) -> bool:
    """Whether fewer tiles have what is read than there are."""
    return math.prod(len(along.tiles) for along in read) < math.prod(sharding.tiles)


def _reading(sig: Signature, read: tuple[_Along, ...]) -> _Reading:
    sharding, dims = sig.sharding, read[: len(sig.sharding.tiles)]
    strides = [math.prod(sharding.tiles[dim + 1 :]) for dim in range(len(dims))]
    positions = tuple(
        sharding.position_of(sum(map(operator.mul, tile, strides)))
        for tile in itertools.product(*(along.tiles for along in dims))
    )
    counts = [None if along.length is None else len(along.tiles) for along in read]
    sharding_of_part = of_part(sharding, positions, tuple(counts))
    shape = tuple(along.length for along in read if along.length is not None)
    type = sig.type.update(shape=shape)
    part = _within(sharding.shard_shape(sig.type.shape), read)
    places = tuple(map(sharding.local_of, positions))
    return _Reading(places, part, Signature.of(type, sharding_of_part))


def _within(block: Sequence[int], dims: tuple[_Along, ...]) -> Callable[[DeviceArray], Any]:
    """What reads the part of a ``block`` of such a shape."""
    read = list(zip(block, dims, strict=True))
    if all(a.within is None or (n == 1 and a.length is None) for n, a in read):
        shape = tuple(n for n, a in read if a.length is not None)
        return _whole if shape == tuple(block) else lambda x: reshape(x, shape=shape)
    index = tuple(slice(None) if a.within is None else a.within for a in dims)
    return lambda x: x[index]


def _whole(block: DeviceArray) -> DeviceArray:
    return block
