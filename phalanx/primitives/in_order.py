"""All lanes of an axis as one, so that the bits of it depend on the values and their number alone.

Lanes 0 and 1 are combined, lanes 2 and 3, and so on, then the first two of these pairs, and so on:
a tree whose shape follows from the number of lanes. A block of lanes combines the pairs that lie
in it, and the blocks exchange what is left. It is small, then each gets all of it and finishes
alone; or it is large, then each finishes a part of it for all, or, if there are few blocks, two of
them add at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.core.axes import Axis
from phalanx.core.blocks import UnevenBlocks
from phalanx.core.primitive import Fold
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.barrier import optimization_barrier
from phalanx.primitives.basis import broadcast, convert, move, reshape, zeros
from phalanx.primitives.compare import select
from phalanx.primitives.domains import F32
from phalanx.primitives.lanes import is_there, lanes_at
from phalanx.primitives.shape import concatenate, merge_dims, slice_dim, split_dim

SMALL = 1024  # elements of a lane up to which one exchange is faster than two of less
# Up to so many blocks, rows of so many elements are exchanged whole: what is exchanged in parts is
# copied to be joined and cut. A step in which eight devices of a CPU add up 1 MB takes 0.87 of the
# time so, and one with 124 arrays of 5,000 elements 1.05.
FEW, LARGE = 8, 2**14

Combine = Callable[[Any, Any], Any]


class Exchanges(Struct, frozen=True):
    """The collectives with which blocks exchange rows: what all have, and to each what is its; and
    that which combines what two have, if it is of no matter to a bit which of them is the first."""

    all_gather: Callable[..., Any]
    all_to_all: Callable[..., Any]
    all_reduce: Callable[..., Any] | None


def accumulating(type: ArrayType) -> ArrayType:
    """The type in which values of ``type`` are taken in: in few bits, small ones would be lost."""
    narrow = dtypes.is_floating(type.dtype) and type.dtype.itemsize < F32.itemsize
    return type.update(dtype=F32, weak=False) if narrow else type


def totals_in_order(axis: Axis, fold: Fold, xs: Sequence[Any], exchanges: Exchanges) -> list[Any]:
    """All lanes of ``axis`` as one, of each of ``xs``, in which those that lie here lead."""
    wide = [_converted(x, accumulating(typeof(x)).dtype) for x in xs]
    if axis.outside:
        totals = _of_all_blocks(axis, fold.combine, wide, exchanges)
    else:
        totals = [tree(fold.combine, x) for x in wide]
    return [_converted(y, typeof(x).dtype) for x, y in zip(xs, totals, strict=True)]


def tree_of_lanes(fold: Fold, x: Any) -> Any:
    """The lanes that lead in ``x`` as one."""
    kind = typeof(x)
    return _converted(tree(fold.combine, _converted(x, accumulating(kind).dtype)), kind.dtype)


def tree(combine: Combine, rows: Any) -> Any:
    """The leading ``rows`` as one: neighbours first."""
    while (count := typeof(rows).shape[0]) > 1:
        pairs = combine(*_of_pairs(slice_dim(rows, 0, count // 2 * 2, 0)))
        last = slice_dim(rows, count - count % 2, count, 0)
        rows = concatenate(pairs, last, dim=0) if count % 2 else pairs
    return reshape(rows, shape=typeof(rows).shape[1:])


def _of_pairs(rows: Any) -> tuple[Any, Any]:
    """The first ones and the second ones of pairs of ``rows``, an even number."""
    pairs = split_dim(rows, 0, (typeof(rows).shape[0] // 2, 2))
    first, second = slice_dim(pairs, 0, 1, 1), slice_dim(pairs, 1, 2, 1)
    return merge_dims(first, 0), merge_dims(second, 0)


def _of_all_blocks(
    axis: Axis, combine: Combine, xs: Sequence[Any], exchanges: Exchanges
) -> list[Any]:
    """What blocks exchange of one dtype, they exchange together."""
    totals = dict[int, Any]()
    kinds = [typeof(x).dtype for x in xs]
    for kind in dict.fromkeys(kinds):
        indices = [i for i, k in enumerate(kinds) if k == kind]
        rows = [_pairs_here(axis, combine, xs[i]) for i in indices]
        large = sum([typeof(row).size for row in rows]) > LARGE * len(rows)
        if exchanges.all_reduce and large and _are_few_and_alike(axis):
            found = _by_pairs_of_blocks(axis, rows, exchanges.all_reduce)
        else:
            found = _joined(axis, combine, rows, exchanges)
        totals.update(zip(indices, found, strict=True))
    return [totals[i] for i in range(len(xs))]


def _are_few_and_alike(axis: Axis) -> bool:
    """Whether the rest of the tree is one of pairs of blocks, each with one row."""
    if axis.padding or type(axis.blocks) is UnevenBlocks or len(axis.outside) > 1:
        return False
    return axis.devices <= FEW and axis.total & (axis.total - 1) == 0


def _by_pairs_of_blocks(
    axis: Axis, rows: Sequence[Any], all_reduce: Callable[..., Any]
) -> Sequence[Any]:
    """Level by level, two blocks get what they have together, as one."""
    totals = [reshape(row, shape=typeof(row).shape[1:]) for row in rows]
    for level in range(axis.devices.bit_length() - 1):
        pairs = [(i, i | 1 << level) for i in range(axis.devices) if not i & 1 << level]
        totals = optimization_barrier(*totals)  # or a compiler makes one exchange of all levels
        totals = all_reduce(*totals, axes=axis.outside, groups=tuple(pairs))
    return totals


def _joined(
    axis: Axis, combine: Combine, rows: Sequence[Any], exchanges: Exchanges
) -> Iterator[Any]:
    """The rows of all blocks as one, of each of ``rows``, which are exchanged as one array."""
    flat = [_flat(row) for row in rows]
    joined = concatenate(*flat, dim=1) if len(flat) > 1 else flat[0]
    total, start = _exchanged(axis, combine, joined, exchanges), 0
    for row in rows:
        _, *shape = typeof(row).shape
        stop = start + math.prod(shape)
        yield reshape(slice_dim(total, start, stop, 0), shape=tuple(shape))
        start = stop


def _flat(rows: Any) -> Any:
    """``rows`` with all dimensions of a row as one."""
    count, *shape = typeof(rows).shape
    return reshape(rows, shape=(count, math.prod(shape)))


def _exchanged(axis: Axis, combine: Combine, rows: Any, exchanges: Exchanges) -> Any:
    """The rows of all blocks as one."""
    where = {"axes": axis.outside, "sizes": axis.sizes_outside, "groups": None}
    size = typeof(rows).shape[1]
    if size <= SMALL:
        return tree(combine, _real(axis, exchanges.all_gather(rows, **where)))
    parts = _in_parts(rows, axis.devices)
    mine = tree(combine, _real(axis, exchanges.all_to_all(parts, **where)))
    return slice_dim(merge_dims(exchanges.all_gather(mine, **where), 0), 0, size, 0)


def _pairs_here(axis: Axis, combine: Combine, rows: Any) -> Any:
    """``rows`` of a block with all levels of the tree that have no pair in two blocks."""
    if type(axis.blocks) is UnevenBlocks:  # they begin anywhere
        return rows
    there = is_there(axis) if axis.padding else None
    while typeof(rows).shape[0] % 2 == 0:
        first, second = _of_pairs(rows)
        rows = combine(first, second)
        if there is not None:
            there, both = _of_pairs(there)
            rows = select(broadcast(both, shape=typeof(rows).shape, dims=(0,)), rows, first)
    return rows


def _real(axis: Axis, blocks: Any) -> Any:
    """The rows of all ``blocks``, one after the other, without padding."""
    length = typeof(blocks).shape[1]
    rows = merge_dims(blocks, 0)
    if type(axis.blocks) is UnevenBlocks:
        return lanes_at(rows, axis.blocks.places)
    lanes_in_row = axis.size // length
    return slice_dim(rows, 0, math.ceil(axis.total / lanes_in_row), 0)


def _in_parts(rows: Any, count: int) -> Any:
    """``rows`` as so many rows of parts of them: part i of each to block i."""
    length, size = typeof(rows).shape
    if short := -size % count:
        padding = zeros(typeof(rows).update(shape=(length, short)))
        rows = concatenate(rows, padding, dim=1)
    return move(split_dim(rows, 1, (count, (size + short) // count)), 1, 0)


def _converted(x: Any, dtype: np.dtype) -> Any:
    return x if typeof(x).dtype == dtype else convert(x, dtype=dtype, weak=False)
