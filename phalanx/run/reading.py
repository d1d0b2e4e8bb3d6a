"""Reading rows and whole blocks of arrays over several devices where they lie."""

from __future__ import annotations

import itertools
import math
import operator
from dataclasses import dataclass
from typing import Any

from phalanx.core.blocks import Blocks
from phalanx.ops.basis import reshape
from phalanx.run.array import DeviceArray, Signature, assemble
from phalanx.spmd.naming import of_part
from phalanx.spmd.sharding import Sharding


@dataclass(frozen=True, slots=True)
class _Along:
    """What is read of a dimension: of the blocks ``tiles`` the part ``within``, None for all.

    ``length`` is how many rows that is together; None for a single row, without the dimension.
    """

    tiles: range
    within: int | slice | None
    length: int | None


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
    sharding, shape = x._sig.sharding, x._sig.type.shape
    entries = index if type(index) is tuple else (index,)
    if not sharding.is_fully_addressable or sharding.memory or len(entries) > len(shape):
        return NotImplemented
    entries = (*entries, *[slice(None)] * (len(shape) - len(entries)))
    every = tuple(map(_along, entries, shape, sharding.blocks(shape)))
    if None in every or not _fewer(every, sharding):  # type: ignore[arg-type]
        return NotImplemented
    return _read(x, every)  # type: ignore[arg-type]


def _along(entry: Any, size: int, blocks: Blocks) -> _Along | None:
    """What ``entry`` reads of a dimension in ``blocks``; None if that has to be moved."""
    if isinstance(entry, slice):
        start, stop, step = entry.indices(size)
        return _rows(start, stop, blocks) if step == 1 else None
    if isinstance(entry, bool):
        return None
    try:
        row = operator.index(entry)
    except TypeError:
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


def _fewer(every: tuple[_Along, ...], sharding: Sharding) -> bool:
    """Whether fewer tiles have what is read than there are."""
    return math.prod(len(along.tiles) for along in every) < math.prod(sharding.tiles)


def _read(x: DeviceArray, every: tuple[_Along, ...]) -> DeviceArray:
    sharding, cut = x._sig.sharding, every[: len(x._sig.sharding.tiles)]
    strides = [math.prod(sharding.tiles[dim + 1 :]) for dim in range(len(cut))]
    positions = tuple(
        sharding.position_of(sum(map(operator.mul, tile, strides)))
        for tile in itertools.product(*(along.tiles for along in cut))
    )
    parts = {sharding.devices[p]: _within(x._block(p), every) for p in positions}
    counts = [None if along.length is None else len(along.tiles) for along in every]
    lies = of_part(sharding, positions, tuple(counts))
    shape = tuple(along.length for along in every if along.length is not None)
    type = x._sig.type.update(shape=shape)
    if len(parts) > 1:
        return assemble([parts[device] for device in lies.devices], type, lies)
    (part,) = parts.values()
    return DeviceArray(part._raw, Signature.of(type, lies))


def _within(block: DeviceArray, every: tuple[_Along, ...]) -> Any:
    """The part of ``block`` that is read."""
    read = list(zip(block.shape, every, strict=True))
    if all(a.within is None or (n == 1 and a.length is None) for n, a in read):
        shape = tuple(n for n, a in read if a.length is not None)
        return block if shape == block.shape else reshape(block, shape=shape)
    return block[tuple(slice(None) if a.within is None else a.within for a in every)]
