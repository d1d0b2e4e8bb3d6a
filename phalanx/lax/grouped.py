"""Collectives within groups of positions, which may be those of several axes together.

Primitives know groups along one axis. Along several, every position gets what all have, and takes
what is its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.core.axes import Names
from phalanx.core.primitive import Primitive
from phalanx.core.types import Ints, typeof
from phalanx.primitives import collective as ops
from phalanx.primitives.basis import add, broadcast, full, mul, reduce_sum, reshape
from phalanx.primitives.collective import Groups, Partition
from phalanx.primitives.compare import eq, select
from phalanx.primitives.domains import I32
from phalanx.primitives.index import GatherDimensionNumbers, gather
from phalanx.primitives.lanes import axis_index, rows_at
from phalanx.primitives.shape import iota, merge_dims


def reduce(
    prim: Primitive, xs: Sequence[Any], axes: Names, sizes: Ints, groups: Groups
) -> Sequence[Any]:
    """``prim``, a reduction, of ``xs`` within groups."""
    if groups is None or len(axes) == 1:
        return prim(*xs, axes=axes, groups=groups)
    number = np.zeros(math.prod(sizes), np.int32)
    for n, members in enumerate(groups):
        number[list(members)] = n
    mine = entry(number, position(axes, sizes))
    numbers = iota(dtype=I32, shape=(len(groups),), dim=0)
    is_mine = eq(numbers, broadcast(mine, shape=(len(groups),), dims=()))
    rows = [_in_row(prim, x, is_mine) for x in xs]
    return [entry(totals, mine) for totals in prim(*rows, axes=axes, groups=None)]


def _in_row(prim: Primitive, x: Any, row: Any) -> Any:
    """``x`` in that of several rows which is marked; in the others, what changes nothing."""
    assert prim.fold is not None
    shape, dtype = typeof(x).shape, typeof(x).dtype
    wide = (*typeof(row).shape, *shape)
    return select(
        broadcast(row, shape=wide, dims=(0,)),
        broadcast(x, shape=wide, dims=tuple(range(1, len(wide)))),
        full(wide, prim.fold.identity(dtype), dtype),
    )


def all_gather(x: Any, axes: Names, sizes: Ints, groups: Groups) -> Any:
    """``ops.all_gather`` within groups."""
    if groups is None or len(axes) == 1:
        return ops.all_gather(x, axes=axes, sizes=sizes, groups=groups)
    gathered = ops.all_gather(x, axes=axes, sizes=sizes, groups=None)
    return _taken(gathered, [group for group, _ in _places(groups)], axes, sizes)


def all_to_all(x: Any, axes: Names, sizes: Ints, groups: Groups) -> Any:
    """``ops.all_to_all`` within groups."""
    if groups is None or len(axes) == 1:
        return ops.all_to_all(x, axes=axes, sizes=sizes, groups=groups)
    parts = merge_dims(ops.all_gather(x, axes=axes, sizes=sizes, groups=None), 0)
    count = len(groups[0])
    wanted = [[sender * count + place for sender in group] for group, place in _places(groups)]
    return _taken(parts, wanted, axes, sizes)


def psum_scatter(x: Any, axes: Names, sizes: Ints, groups: Groups) -> Any:
    """``ops.psum_scatter`` within groups."""
    if groups is None or len(axes) == 1:
        return ops.psum_scatter(x, axes=axes, sizes=sizes, groups=groups)
    return reduce_sum(all_to_all(x, axes, sizes, groups), dims=(0,))


def _places(groups: Partition) -> list[tuple[tuple[int, ...], int]]:
    """The group of every position, in order, and its place in the group."""
    found = {member: (group, i) for group in groups for i, member in enumerate(group)}
    return [found[i] for i in range(len(found))]


def _taken(rows: Any, wanted: Sequence[Sequence[int]], axes: Names, sizes: Ints) -> Any:
    """Those of ``rows`` that are ``wanted`` at this position."""
    return rows_at(rows, entry(np.array(wanted, np.int32), position(axes, sizes)))


def position(axes: Names, sizes: Ints) -> Any:
    """The index of this lane along ``axes`` of ``sizes``, row by row."""
    index: Any = None
    for name, size in zip(axes, sizes, strict=True):
        here = axis_index(axes=(name,))
        index = here if index is None else add(mul(index, size), here)
    return full((), 0, I32) if index is None else index


def entry(x: Any, index: Any) -> Any:
    """x[index] along the leading dimension, for an index that is not known while tracing."""
    shape = typeof(x).shape
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(len(shape) - 1)), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    where = reshape(index, shape=(1,))
    return gather(x, where, numbers=numbers, slice_sizes=(1, *shape[1:]), mode="clip")
