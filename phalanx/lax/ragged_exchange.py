"""Exchanges of slices whose lengths are data."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.base.source import user_location
from phalanx.core.types import Array, typeof
from phalanx.lax.collective import AxisName, Groups, all_gather, all_to_all
from phalanx.lax.operands import accept
from phalanx.primitives.contract import as_dtype
from phalanx.primitives.domains import I32
from phalanx.primitives.index import GatherDimensionNumbers
from phalanx.primitives.shape import iota, merge_dims


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: AxisName,
    axis_index_groups: Groups = None,
) -> Array:
    """``output`` with slices of the lanes' operands: every lane sends some to every lane.

    With n lanes, the offsets and sizes have n k entries: k for the first lane, k for the next, ...
    Every lane gets all operands, and takes what is its own.

    Args:
        operand: [N, ...], rows of which slices are sent.
        output: [M, ...], of the same dtype; rows that no slice covers stay.
        input_offsets: where each slice begins in ``operand``.
        send_sizes: how many rows it has.
        output_offsets: where it begins in the output of the lane that receives it.
        recv_sizes: how many rows the slices have that this lane receives, k from the first lane,
            k from the next, ...; what the others say in ``send_sizes``.
        axis_name: the axis, or a sequence of them.
        axis_index_groups: equal groups that partition the axes; lanes exchange within theirs.

    Returns:
        An array of the shape and dtype of ``output``.

    Raises:
        ShapeError: rows differ in shape, or offsets and sizes in length.
        TypeError: offsets or sizes are no integers, or the dtypes differ.

    >>> import phalanx, phalanx.numpy as jnp
    >>> def f(x, sizes, where, got):
    ...     at = jnp.array([0, 1])
    ...     out = jnp.zeros(4, jnp.int32)
    ...     return lax.ragged_all_to_all(x, out, at, sizes, where, got, axis_name="i")
    >>> phalanx.vmap(f, axis_name="i")(
    ...     jnp.array([[1, 2, 2], [3, 4, 0]]), jnp.array([[1, 2], [1, 1]]),
    ...     jnp.array([[0, 0], [1, 2]]), jnp.array([[1, 1], [2, 1]]),
    ... )
    Array([[1, 3, 0, 0],
           [2, 2, 4, 0]], dtype=int32)
    """
    who = "ragged_all_to_all"
    x, out = typeof(accept(who, operand)), typeof(accept(who, output))
    if x.dtype != out.dtype or x.ndim == 0 or x.ndim != out.ndim or x.shape[1:] != out.shape[1:]:
        raise ShapeError(
            f"{who}: operand and output must be rows of one shape and dtype, got {x} and {out}, at "
            f"{user_location()}"
        )
    vectors = [_whole(v) for v in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    if len({typeof(v).shape for v in vectors}) > 1:
        raise ShapeError(
            f"{who}: offsets and sizes must have one length, got "
            f"{', '.join(str(typeof(v)) for v in vectors)}, at {user_location()}"
        )
    begins, _, places, sizes = vectors

    def received(v: Any) -> Any:
        return all_to_all(v, axis_name, 0, 0, tiled=True, axis_index_groups=axis_index_groups)

    gathered = all_gather(operand, axis_name, axis_index_groups=axis_index_groups)
    count, rows = typeof(gathered).shape[:2]
    slices = typeof(sizes).shape[0]
    sender = np.repeat(np.arange(count, dtype=np.int32), slices // count) * rows
    source = ops.sub(ops.add(received(begins), sender), received(places))
    return _written(output, merge_dims(gathered, 0), received(places), sizes, source)


def _whole(v: Any) -> Any:
    """Offsets or sizes as int32.

    Raises:
        TypeError: they are no vector of integers.
    """
    type = typeof(accept("ragged_all_to_all", v))
    if type.ndim != 1 or not dtypes.is_integer(type.dtype):
        raise TypeError(
            f"ragged_all_to_all: offsets and sizes must be vectors of integers, got {type}, at "
            f"{user_location()}"
        )
    return as_dtype(v, I32)


def _written(output: Any, rows: Any, places: Any, sizes: Any, source: Any) -> Any:
    """``output`` with slices of ``rows`` written over it, one after the other.

    Row p of a slice comes from row ``source + p``.
    """
    out = typeof(output)
    shape = (typeof(sizes).shape[0], out.shape[0])
    here = iota(dtype=I32, shape=shape, dim=1)
    begin, size, shift = (ops.broadcast(v, shape=shape, dims=(0,)) for v in (places, sizes, source))
    within = ops.sub(here, begin)
    covered = ops.and_(ops.ge(within, np.int32(0)), ops.lt(within, size))
    # of several slices that cover a row, the last is what it keeps
    number = ops.select(covered, iota(dtype=I32, shape=shape, dim=0), np.int32(-1))
    last = ops.reduce_max(number, dims=(0,))
    chosen = ops.eq(number, ops.broadcast(last, shape=shape, dims=(1,)))
    taken = ops.select(ops.and_(covered, chosen), ops.add(here, shift), np.int32(0))
    index = ops.reshape(ops.reduce_sum(taken, dims=(0,)), shape=(out.shape[0], 1))
    numbers = GatherDimensionNumbers(tuple(range(1, out.ndim)), (0,), (0,))
    got = ops.gather(rows, index, numbers=numbers, slice_sizes=(1, *out.shape[1:]), mode="clip")
    known = ops.broadcast(ops.ge(last, np.int32(0)), shape=out.shape, dims=(0,))
    return ops.select(known, got, output)
