"""The lanes of a mapped axis as the leading dimension of an array, where it may be split.

Lane ``l`` of an axis lies in block ``l // size`` at place ``l % size``. Lanes beyond the last
one are padding: they hold copies of it, and reductions leave them out. Over processes any block may
end in padding; then tables tell the lane of a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.core.axes import Axis, Names
from phalanx.core.blocks import UnevenBlocks
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    Batched,
    Example,
    Fold,
    LaneDims,
    NamedAxes,
    NoRule,
    Operands,
    Primitive,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, broadcast, broadcast_lanes, full, move, mul
from phalanx.primitives.compare import lt, min, select
from phalanx.primitives.domains import I32
from phalanx.primitives.index import GatherDimensionNumbers, gather
from phalanx.primitives.shape import concatenate, iota, merge_dims, slice_dim, split_dim


def leading(x: Any, dim: int | None, size: int) -> Any:
    """``x`` with its lanes leading, repeated if it has none."""
    return broadcast_lanes(x, 0, size) if dim is None else move(x, dim, 0)


def rows_at(x: Any, positions: Any) -> Any:
    """out[i] = x[positions[i]] along the leading dimension; every position is in range."""
    shape = typeof(x).shape
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape))),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    indices = broadcast(positions, shape=(*typeof(positions).shape, 1), dims=(0,))
    return gather(x, indices, numbers=numbers, slice_sizes=(1, *shape[1:]), mode="promise")


def lanes_at(x: Any, positions: Sequence[int]) -> Any:
    """``rows_at`` for positions that are known."""
    if list(positions) == list(range(typeof(x).shape[0])):
        return x
    return rows_at(x, np.asarray(positions, np.int32))


def _axis_index_batch(axis: Axis, xs: Operands, dims: LaneDims, *, axes: Names) -> Batched:
    return index_of(axis), 0


def named_by_axes(*, axes: Names, **_: Any) -> frozenset[Any]:
    """The named axes of an operation that lists them in its parameter ``axes``."""
    return frozenset(axes)


def _axis_index_type(axes: Names) -> ArrayType:
    return ArrayType((), I32)


def _axis_index_lower(b: Builder, axes: Names) -> Value:
    return b.axis_index(*axes)


def _axis_index_varies(axes: Names) -> frozenset[Any]:
    return frozenset(axes)


axis_index = Primitive(
    "axis_index",
    _axis_index_type,
    _axis_index_lower,
    linearize=ZeroDerivative("a position is an integer"),
    transpose=NoRule("it has no operand"),
    batch=_axis_index_batch,
    vary=_axis_index_varies,
    named_axes=NamedAxes(named_by_axes, communicates=False),
    doc="the position l of this lane along the axis; stablehlo.partition_id",
    examples=[Example((), {"axes": ("i",)}, axes=(("i", 4),))],
)


def place_of(axis: Axis) -> Any:
    """The place of each lane of this block in the whole axis, padding included."""
    numbers = iota(dtype=I32, shape=(axis.size,), dim=0)
    outside = axis.outside
    if not outside:
        return numbers
    start = mul(axis_index(axes=outside), np.int32(axis.size))
    return add(broadcast(start, shape=(axis.size,), dims=()), numbers)


def index_of(axis: Axis) -> Any:
    """The index of each lane of this block along the axis; that of the last for padding."""
    place = place_of(axis)
    if not axis.padding:
        return place
    if type(axis.blocks) is UnevenBlocks:
        return rows_at(np.array(axis.blocks.held, np.int32), place)
    return min(place, np.int32(axis.total - 1))


def of_lanes(axis: Axis, table: np.ndarray) -> Any:
    """The rows of ``table``, which has one for each lane of the axis, for those of this block."""
    return rows_at(table, index_of(axis)) if axis.outside else table


def of_places(axis: Axis, table: np.ndarray) -> Any:
    """The same for a table that has rows for the padding, too."""
    return rows_at(table, place_of(axis)) if axis.outside else table


def of_block(axis: Axis, table: np.ndarray) -> Any:
    """The row of ``table``, which has one for each block, for this block."""
    block = axis_index(axes=axis.outside)
    return merge_dims(rows_at(table, broadcast(block, shape=(1,), dims=())), 0)


def without_padding(axis: Axis, x: Any, identity: Any) -> Any:
    """``x``, lanes leading, with ``identity`` in those that are padding."""
    if not axis.padding:
        return x
    return only_where(is_there(axis), x, identity)


def is_there(axis: Axis) -> Any:
    """Whether each lane of this block is one of the axis, and no padding."""
    if type(axis.blocks) is UnevenBlocks:
        there = np.zeros(axis.blocks.padded, bool)
        there[list(axis.blocks.places)] = True
        return rows_at(there, place_of(axis))
    return lt(place_of(axis), np.int32(axis.total))


def only_where(there: Any, x: Any, identity: Any) -> Any:
    """``x``, lanes leading, with ``identity`` in those that are not ``there``."""
    type = typeof(x)
    mask = broadcast(there, shape=type.shape, dims=(0,))
    return select(mask, x, full(type.shape, identity, type.dtype))


def folded(axis: Axis, fold: Fold, x: Any, dim: int) -> Any:
    """All lanes of ``x`` that lie here, but for padding, as one."""
    return fold.local(without_padding(axis, move(x, dim, 0), fold.identity(typeof(x).dtype)))


def into_blocks(axis: Axis, x: Any, dim: int) -> Any:
    """``x`` with the whole axis in ``dim`` as two dimensions: the blocks, and their lanes."""
    if axis.padding and type(axis.blocks) is UnevenBlocks:
        x = move(lanes_at(move(x, dim, 0), axis.blocks.held), 0, dim)
    elif axis.padding:
        last = slice_dim(x, axis.total - 1, axis.total, dim)
        x = concatenate(x, *[last] * axis.padding, dim=dim)
    return split_dim(x, dim, (axis.devices, axis.size))


def from_blocks(axis: Axis, x: Any, dim: int) -> Any:
    """The inverse of ``into_blocks``: the padding is cut off."""
    x = merge_dims(x, dim)
    if type(axis.blocks) is UnevenBlocks:
        return move(lanes_at(move(x, dim, 0), axis.blocks.places), 0, dim)
    return slice_dim(x, 0, axis.total, dim)
