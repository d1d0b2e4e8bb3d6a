"""Tiles of arrays in the host's memory: cut, joined, and given to devices.

CPU devices read the host's memory as their own. There the copies of a tile are one memory under
several devices, and an array goes from one layout to another without passing through a whole
one: a tile that lies within another shares its memory where that is possible, and what lies in
several is joined from them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base.recent import memoized
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks, blocks_of
from phalanx.core.types import ArrayType
from phalanx.spmd.sharding import Index, Sharding
from phalanx.xla.failures import only_described, translated
from phalanx.xla.flight import read
from phalanx.xla.jaxlib_versions import is_described, xc
from phalanx.xla.sharded import Parts, sharded_type

Raw = Any
_SHARING = xc.HostBufferSemantics.ZERO_COPY  # for memory that nobody changes
_COPYING = xc.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIGNMENT = 64  # of memory that the runtime takes as it is
_SMALL = 1 << 15  # bytes that are copied in less time than it takes to align them


def put_part(part: np.ndarray, type: ArrayType, layout: Any, device: Any, shared: bool) -> Raw:
    """``part`` on ``device``; ``shared``: nobody changes it, so the memory may be the same."""
    how = _SHARING if shared else _COPYING
    try:
        return xc.batched_device_put(type, layout, [part], [device], True, False, how, True)
    except (RuntimeError, TypeError) as e:
        if is_described(device):
            raise only_described(device, f"at {user_location()}") from None
        raise translated(e, "put") from None


def tiled(host: np.ndarray, type: ArrayType, sharding: Sharding) -> Raw:
    """The array ``host``, which others may change later, laid out as ``sharding``."""
    return _tiled([host], type, None, sharding, shared=False)


def rearranged(parts: Sequence[Raw], type: ArrayType, source: Sharding, target: Sharding) -> Raw:
    """The array of ``parts``, which are laid out as ``source``, laid out as ``target``."""
    return _tiled(_Views(parts), type, source, target, shared=True)


def joined_tiles(parts: Sequence[Raw], type: ArrayType, source: Sharding) -> np.ndarray:
    """The elements of the array of ``parts``, without padding; it may share their memory."""
    (recipe,), _ = recipes(type.shape, source, _HOST)
    return recipe.assemble(_Views(parts))


_HOST = Sharding(("the host",))


def in_host_memory(sharding: Sharding) -> bool:
    """Whether the devices read the host's memory."""
    return sharding.device_list[0].platform == "cpu"


class _Views(dict[int, np.ndarray]):
    """The elements of the parts of an array, by number, of those that are asked for."""

    def __init__(self, parts: Sequence[Raw]) -> None:
        self.parts = parts

    def __missing__(self, number: int) -> np.ndarray:
        value = self[number] = read(self.parts[number])
        return value


def _tiled(
    views: Any, type: ArrayType, source: Sharding | None, target: Sharding, shared: bool
) -> Raw:
    split, on_host, copies = sharded_type(type, target), in_host_memory(target), target.copies
    found, order = recipes(type.shape, source, target)
    tiles: list[np.ndarray | None] = [None] * len(found)
    parts: list[Raw] = []
    for n, layout, device in zip(order, split.part_layouts, split.devices, strict=True):
        tile = tiles[n]
        if tile is not None:
            part = put_part(tile, split.part, layout, device, on_host)
        else:
            tile = found[n].assemble(views)
            part = put_part(tile, split.part, layout, device, shared and on_host)
            if copies > 1:
                tiles[n] = read(part) if on_host else tile
        parts.append(part)
    return parts[0] if parts and len(target.device_list) == 1 else Parts(split, parts)


class Recipe(Struct, frozen=True):
    """A tile of ``shape`` made of ``pieces`` and then copies of its last rows up to ``padded``.

    A piece is the number of a part, what is taken of it, and where in the tile that goes.
    """

    shape: tuple[int, ...]
    padded: tuple[int, ...]
    pieces: tuple[tuple[int, Any, Index], ...]

    def assemble(self, views: Any) -> np.ndarray:
        """The tile from the parts ``views``; it may share their memory."""
        if len(self.pieces) == 1:
            ((part, source, _),) = self.pieces
            tile = views[part][source]
        else:
            tile = _allocated(self.shape, views[self.pieces[0][0]].dtype)
            for part, source, target in self.pieces:
                tile[target] = views[part][source]
        if self.shape == self.padded:
            return tile
        ends = zip(self.shape, self.padded, strict=True)
        return np.pad(tile, [(0, end - n) for n, end in ends], mode="edge")


def _allocated(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """New memory that the runtime takes as it is, unless it is small."""
    size = math.prod(shape) * dtype.itemsize
    if size < _SMALL:
        return np.empty(shape, dtype)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    address, _ = memory.__array_interface__["data"]
    return np.ndarray(shape, dtype, memory, -address % _ALIGNMENT)


@memoized(1024)
def recipes(
    shape: tuple[int, ...], source: Sharding | None, target: Sharding
) -> tuple[tuple[Recipe, ...], tuple[int, ...]]:
    """The tiles of ``target``, of the parts of ``source``; which one goes to which local device.

    Without ``source`` there is one part, the whole array.
    """
    parts: dict[tuple[int, ...], int] = {}
    for number, position in enumerate(source.local_positions if source else (0,)):
        parts.setdefault(source.tile_at(position) if source else (), number)
    split = blocks_of(shape, source.tiles if source else ())
    depth = len(source.tiles) if source else 0
    tiles: dict[tuple[int, ...], Recipe] = {}
    order: list[int] = []
    for position in target.local_positions:
        tile = target.tile_at(position)
        if tile not in tiles:
            rows = target.rows(shape, position)
            # where there is nothing but padding, it is made of the last row
            rows = [r or range(max(n - 1, 0), n) for r, n in zip(rows, shape, strict=True)]
            pieces = _pieces(rows, split, depth, parts)
            lengths = tuple(map(len, rows))
            tiles[tile] = Recipe(lengths, target.shard_shape(shape), tuple(pieces))
        order.append(list(tiles).index(tile))
    return tuple(tiles.values()), tuple(order)


def _pieces(
    rows: Sequence[range], blocks: Sequence[Blocks], depth: int, parts: dict[tuple[int, ...], int]
) -> list[tuple[int, Any, Index]]:
    """Which parts hold ``rows``, which of them, and where among the rows these are."""
    found: list[tuple[int, Any, Index]] = []
    for overlaps in itertools.product(*map(_overlaps, rows, blocks)):
        places, sources, targets = zip(*overlaps, strict=True) if overlaps else ((), (), ())
        found.append((parts[places[:depth]], (*sources, ...), targets))
    return found


def _overlaps(rows: range, blocks: Blocks) -> list[tuple[int, slice, slice]]:
    """Which of ``blocks`` hold ``rows``, which of them, and where among the rows these are."""
    if blocks.count == 1 or not rows:
        return [(0, slice(rows.start, rows.stop), slice(0, len(rows)))]
    found: list[tuple[int, slice, slice]] = []
    for place in range(rows.start // blocks.length, rows[-1] // blocks.length + 1):
        first = place * blocks.length
        start, stop = max(rows.start, first), min(rows.stop, first + blocks.length)
        there = slice(start - first, stop - first)
        found.append((place, there, slice(start - rows.start, stop - rows.start)))
    return found
