"""Products of rows in groups, and sums of products of rows by groups: each the other's derivative.

TPUs have an operation for both, which skips what groups do not share. Elsewhere rows are dealt out
in blocks, and these are multiplied.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.base.lengths import larger, smaller
from phalanx.core.axes import Axis
from phalanx.core.blocks import Blocks
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import Dims, LeftSums, Whole
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import (
    add,
    add_tangents,
    broadcast,
    broadcast_lanes,
    full,
    move,
    mul,
    reduce_sum,
    sub,
    zeros,
)
from phalanx.primitives.compare import le, lt, select
from phalanx.primitives.compare import min as minimum
from phalanx.primitives.contract import as_dtype, dot_general, product_type, same_dtype
from phalanx.primitives.cumulative import cumsum
from phalanx.primitives.domains import I32, f32
from phalanx.primitives.elementwise import div
from phalanx.primitives.index import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter_add,
)
from phalanx.primitives.linalg.algebra import matrix_transposed
from phalanx.primitives.linalg.family import listed
from phalanx.primitives.shape import iota, merge_dims, pad, reshape, slice_dim, split_dim

# ---- blocks of rows -------------------------------------------------------------------------


class _DealtRows:
    """Rows in groups, dealt out in blocks of one length; no block has rows of two groups.

    There are at most twice as many blocks as groups, so that padding costs no more than the rows.
    (What XLA writes out for chlo.ragged_dot, but for TPUs, multiplies each row by the matrices of
    all groups.)

    Attributes:
        group: of each block; their number where a block is not needed.
        rows: [blocks, length], their rows; the number of all rows where there is none.
        place: of each row, counted along the rows of all blocks; their number where there is none.
    """

    def __init__(self, sizes: Any, rows: int) -> None:
        groups = typeof(sizes).shape[0]
        length = larger(1, Blocks(rows, groups).length)
        count = smaller(rows // length + groups, rows)
        ends = minimum(cumsum(sizes, dim=0, reverse=False), rows)
        starts = _shifted(ends)
        needed = div(add(sub(ends, starts), length - 1), length)
        last = cumsum(needed, dim=0, reverse=False)
        first = _shifted(last)

        positions = iota(dtype=I32, shape=(count,), dim=0)
        self.group = _found(last, positions)
        within = mul(sub(positions, _rows(first, self.group)), length)
        begin = add(_rows(starts, self.group), within)
        shape = (count, length)
        row = add(_along(begin, shape, 0), iota(dtype=I32, shape=shape, dim=1))
        there = lt(row, _along(_rows(ends, self.group), shape, 0))
        self.rows = select(there, row, rows)

        positions = iota(dtype=I32, shape=(rows,), dim=0)
        group = _found(ends, positions)
        within = sub(positions, _rows(starts, group))
        place = add(mul(_rows(first, group), length), within)
        self.place = select(lt(group, groups), place, count * length)


def _along(x: Any, shape: tuple[int, int], dim: int) -> Any:
    return broadcast(x, shape=shape, dims=(dim,))


def _shifted(ends: Any) -> Any:
    """Where each begins that ends at ``ends``."""
    return pad(ends, np.int32(0), config=((1, -1, 0),))


def _found(ends: Any, places: Any) -> Any:
    """Which of the intervals that end at ``ends`` each of ``places`` lies in."""
    shape = (typeof(places).shape[0], typeof(ends).shape[0])
    before = le(_along(ends, shape, 1), _along(places, shape, 0))
    return reduce_sum(as_dtype(before, I32), dims=(1,))


def _rows(x: Any, where: Any) -> Any:
    """``x[where]``, and 0 beyond the last row."""
    shape, batch = typeof(x).shape, typeof(where).ndim
    numbers = GatherDimensionNumbers(tuple(range(batch, batch + len(shape) - 1)), (0,), (0,))
    where = reshape(where, shape=(*typeof(where).shape, 1))
    sizes = (1, *shape[1:])
    return gather(x, where, numbers=numbers, slice_sizes=sizes, mode="fill", fill=0)


# ---- rows by matrices -----------------------------------------------------------------------


def _check(who: str, form: str, *types: ArrayType) -> None:
    """Raise unless the dimensions of ``types`` are those of ``form``, equal where letters are."""
    lengths: dict[str, int] = {}
    parts = zip(form.split(), types, strict=True)
    fits = all(
        len(part) == t.ndim
        and all(lengths.setdefault(c, n) == n for c, n in zip(part, t.shape, strict=True))
        for part, t in parts
    )
    if not fits or types[-1].dtype != I32:
        raise ShapeError(
            f"{who}: arrays of dimensions {form} are needed, the last of int32, got {listed(types)}"
        )


def _dot_type(
    x: ArrayType,
    y: ArrayType,
    sizes: ArrayType,
    *,
    precision: Any = None,
    dtype: Any = None,
    **sums: Unpack[LeftSums],
) -> ArrayType:
    _check("ragged_dot", "mk gkn g", x, y, sizes)
    return ArrayType((x.shape[0], y.shape[2]), product_type("ragged_dot", x, y, dtype))


def _dot_lower(
    b: Builder, x: Value, y: Value, sizes: Value, unreduced: tuple[str, ...] = (), **how: Any
) -> Value:
    return b.traced(partial(_dot_of_blocks, **how), x, y, sizes)


def _dot_of_blocks(x: Any, y: Any, sizes: Any, **how: Any) -> Any:
    if not typeof(sizes).size:
        return zeros(_dot_type(*map(typeof, (x, y, sizes)), **how))
    blocks = _DealtRows(sizes, typeof(x).shape[0])
    rows, matrices = _rows(x, blocks.rows), _rows(y, blocks.group)
    out = dot_general(rows, matrices, contract=((2,), (1,)), batch=((0,), (0,)), **how)
    return _rows(merge_dims(out, 0), blocks.place)


def _dot_on_tpu(
    b: Builder, x: Value, y: Value, sizes: Value, precision: Any = None, **_: Any
) -> Value:
    return b.ragged_dot(x, y, sizes, ((1,), (1,)), b.outs[0], precision)


def _dot_linearize(active: Active, x: Any, y: Any, sizes: Any, **how: Any) -> Derivative:
    return ragged_dot(x, y, sizes, **how), _linear(ragged_dot, x, y, sizes, how)


def _linear(prim: Primitive, x: Any, y: Any, sizes: Any, how: dict[str, Any]) -> Any:
    def linear(tx: Any, ty: Any, _: Any) -> Any:
        return add_tangents(
            ZERO if tx is ZERO else prim(tx, y, sizes, **how),
            ZERO if ty is ZERO else prim(x, ty, sizes, **how),
        )

    return linear


def _dot_transpose(
    ct: Any, x: Any, y: Any, sizes: Any, *, precision: Any = None, **_: Any
) -> Cotangents:
    """ct yᵀ, by the same groups, or the sums of xᵀ ct."""
    if isinstance(x, Linear):
        ct, y = same_dtype(ct, y)
        of_x = ragged_dot(ct, matrix_transposed(y), sizes, precision=precision)
        return [as_dtype(of_x, x.type.dtype), None, None]
    x, ct = same_dtype(x, ct)
    return [None, as_dtype(ragged_sums(x, ct, sizes, precision=precision), y.type.dtype), None]


def _dot_batch(axis: Axis, values: Operands, dims: LaneDims, **how: Any) -> Batched:
    """Groups of all lanes one after the other, and for each lane one more of the rows beyond, which
    meets zeros."""
    x, y, sizes = _in_front(axis, values, dims)
    out = ragged_dot(merge_dims(x, 0), merge_dims(_one_more(y), 0), _all_sizes(x, sizes), **how)
    return split_dim(out, 0, typeof(x).shape[:2]), 0


def _in_front(axis: Axis, values: Operands, dims: LaneDims) -> list[Any]:
    return [
        broadcast_lanes(v, 0, axis.size) if d is None else move(v, d, 0)
        for v, d in zip(values, dims, strict=True)
    ]


def _one_more(matrices: Any) -> Any:
    kind = typeof(matrices)
    zero = dtypes.scalar(0, kind.dtype)
    return pad(matrices, zero, config=((0, 0, 0), (0, 1, 0), (0, 0, 0), (0, 0, 0)))


def _all_sizes(x: Any, sizes: Any) -> Any:
    """Sizes for all lanes [l * (g + 1)], of rows [l, m, ...] in groups of ``sizes`` [l, g]."""
    rows = typeof(x).shape[1]
    ends = minimum(cumsum(sizes, dim=1, reverse=False), rows)
    ends = pad(ends, np.int32(rows), config=((0, 0, 0), (0, 1, 0)))
    before = pad(ends, np.int32(0), config=((0, 0, 0), (1, -1, 0)))
    return merge_dims(sub(ends, before), 0)


def _dot_operations(results: Any, x: ArrayType, y: ArrayType, sizes: ArrayType, **_: Any) -> float:
    """Blocks are half full at the least."""
    return 4 * results[0].size * x.shape[1]


_ANY_GROUP = Whole("each row may be of any group")


def _dot_dims(*_: ArrayType, unreduced: tuple[str, ...] = (), **how: Any) -> Dims:
    """Rows stay those of x, columns those of the matrices."""
    operands = ("row", "sum"), (_ANY_GROUP, "sum", "column"), (_ANY_GROUP,)
    return Dims(operands, (("row", "column"),), product=True, unreduced=unreduced)


ragged_dot = Primitive(
    "ragged_dot",
    _dot_type,
    _dot_lower,
    lower_on={"tpu": _dot_on_tpu},
    linearize=_dot_linearize,
    transpose=_dot_transpose,
    batch=_dot_batch,
    dims=_dot_dims,
    leaves_sums=True,
    elements=Elements(operations=_dot_operations),
    doc="rows of x by y[i], i the group in which each lies, of sizes; else 0; chlo.ragged_dot",
    examples=[
        Example((f32(7, 8), f32(3, 8, 4), np.array([2, 0, 4], np.int32))),
        Example((f32(4, 9), f32(2, 9, 3), np.array([1, 5], np.int32))),
    ],
)

# ---- sums by groups -------------------------------------------------------------------------


def _sums_type(
    x: ArrayType,
    y: ArrayType,
    sizes: ArrayType,
    *,
    precision: Any = None,
    dtype: Any = None,
    **sums: Unpack[LeftSums],
) -> ArrayType:
    _check("ragged_sums", "mk mn g", x, y, sizes)
    shape = (*sizes.shape, x.shape[1], y.shape[1])
    return ArrayType(shape, product_type("ragged_sums", x, y, dtype))


def _sums_lower(
    b: Builder, x: Value, y: Value, sizes: Value, unreduced: tuple[str, ...] = (), **how: Any
) -> Value:
    return b.traced(partial(_sums_of_blocks, **how), x, y, sizes)


def _sums_of_blocks(x: Any, y: Any, sizes: Any, **how: Any) -> Any:
    if not typeof(sizes).size:
        return zeros(_sums_type(*map(typeof, (x, y, sizes)), **how))
    blocks = _DealtRows(sizes, typeof(x).shape[0])
    sides = _rows(x, blocks.rows), _rows(y, blocks.rows)
    sums = dot_general(*sides, contract=((1,), (1,)), batch=((0,), (0,)), **how)
    kind = typeof(sums)
    totals = full((typeof(sizes).shape[0], *kind.shape[1:]), 0, kind.dtype)
    where = reshape(blocks.group, shape=(kind.shape[0], 1))
    rows = ScatterDimensionNumbers((1, 2), (0,), (0,))
    return scatter_add(totals, where, sums, numbers=rows, mode="fill")


def _sums_on_tpu(
    b: Builder, x: Value, y: Value, sizes: Value, precision: Any = None, **_: Any
) -> Value:
    return b.ragged_dot(x, y, sizes, ((0,), (0,)), b.outs[0], precision)


def _sums_linearize(active: Active, x: Any, y: Any, sizes: Any, **how: Any) -> Derivative:
    return ragged_sums(x, y, sizes, **how), _linear(ragged_sums, x, y, sizes, how)


def _sums_transpose(
    ct: Any, x: Any, y: Any, sizes: Any, *, precision: Any = None, **_: Any
) -> Cotangents:
    """y ctᵀ or x ct, by the same groups."""
    other = y if isinstance(x, Linear) else x
    ct, other = same_dtype(ct, other)
    ct = matrix_transposed(ct) if isinstance(x, Linear) else ct
    out = ragged_dot(other, ct, sizes, precision=precision)
    if isinstance(x, Linear):
        return [as_dtype(out, x.type.dtype), None, None]
    return [None, as_dtype(out, y.type.dtype), None]


def _sums_operations(results: Any, x: ArrayType, y: ArrayType, *_: Any, **__: Any) -> float:
    return 4 * x.size * y.shape[1]


def _sums_batch(axis: Axis, values: Operands, dims: LaneDims, **how: Any) -> Batched:
    x, y, sizes = _in_front(axis, values, dims)
    lanes, groups = typeof(sizes).shape
    out = ragged_sums(merge_dims(x, 0), merge_dims(y, 0), _all_sizes(x, sizes), **how)
    return slice_dim(split_dim(out, 0, (lanes, groups + 1)), 0, groups, 1), 0


def _sums_dims(*_: ArrayType, unreduced: tuple[str, ...] = (), **how: Any) -> Dims:
    """Rows of the sums are columns of x, their columns those of y."""
    operands = ("row", "x"), ("row", "y"), (_ANY_GROUP,)
    return Dims(operands, ((None, "x", "y"),), product=True, unreduced=unreduced)


ragged_sums = Primitive(
    "ragged_sums",
    _sums_type,
    _sums_lower,
    lower_on={"tpu": _sums_on_tpu},
    linearize=_sums_linearize,
    transpose=_sums_transpose,
    batch=_sums_batch,
    dims=_sums_dims,
    leaves_sums=True,
    elements=Elements(operations=_sums_operations),
    doc="xᵀ y of each group of rows, of sizes; chlo.ragged_dot",
    examples=[
        Example((f32(7, 6), f32(7, 5), np.array([2, 0, 4], np.int32))),
        Example((f32(4, 8), f32(4, 5), np.array([1, 5], np.int32))),
    ],
)
