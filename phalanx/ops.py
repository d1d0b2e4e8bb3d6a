"""Reductions over segments: the rows of an array that carry the same number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ShapeError
from phalanx.base.lengths import integer
from phalanx.core.blocks import Blocks
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.promotion import ArrayLike, as_array, convert, value_of
from phalanx.numpy.subscripts import WRITE_MODES, mode_of

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


@takes_out_sharding
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The sums of the rows of each segment.

    Args:
        data: rows, along the first dimension.
        segment_ids: [n], integers: the segment of each row. Rows of segments that are not there
            are left out, or as ``mode`` says.
        num_segments: how many; default one more than the largest number. Transformations need it.
        indices_are_sorted: a promise about ``segment_ids``, for speed on some devices.
        unique_indices: a promise that no number is in ``segment_ids`` twice.
        bucket_size: at most so many rows are reduced in one go, and then what these gave: longer
            sums round less.
        mode: "drop" or "fill" (None): numbers of other segments are left out; "clip": they mean
            the nearest segment; "promise_in_bounds": there are none.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array [num_segments, ...]; a segment without rows has 0.

    Raises:
        ShapeError: ``segment_ids`` is not a vector with a number for each row.
        TypeError: its elements are no integers, or ``data`` are bools.
        ValueError: ``num_segments`` is negative, ``bucket_size`` not positive, or ``mode`` unknown.

    >>> import phalanx, phalanx.numpy as jnp
    >>> print(phalanx.ops.segment_sum(jnp.arange(5), jnp.array([0, 0, 1, 1, 3])))
    [1 5 0 4]
    """
    options = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode)
    return _reduced("segment_sum", data, segment_ids, options)


@takes_out_sharding
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The products of the rows of each segment; of no rows 1. See ``segment_sum``.

    It is differentiated where ``unique_indices`` is true.

    Args:
        data: rows, along the first dimension.
        segment_ids: [n], integers: the segment of each row. Rows of segments that are not there are
            left out, or as ``mode`` says.
        num_segments: how many; default one more than the largest number. Transformations need it.
        indices_are_sorted: a promise about ``segment_ids``, for speed on some devices.
        unique_indices: a promise that no number is in ``segment_ids`` twice.
        bucket_size: at most so many rows are multiplied in one go, and then what these gave.
        mode: "drop" or "fill" (None): numbers of other segments are left out; "clip": they mean the
            nearest segment; "promise_in_bounds": there are none.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array [num_segments, ...] of the dtype of ``data``.

    Raises:
        ShapeError: ``segment_ids`` is not a vector with a number for each row.

    >>> import phalanx, phalanx.numpy as jnp
    >>> print(phalanx.ops.segment_prod(jnp.arange(5), jnp.array([0, 0, 1, 1, 3])))
    [0 6 1 4]
    """
    options = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode)
    return _reduced("segment_prod", data, segment_ids, options)


@takes_out_sharding
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The largest of the rows of each segment; of no rows the least number of the dtype, -inf.

    See ``segment_sum``.

    Args:
        data: rows, along the first dimension.
        segment_ids: [n], integers: the segment of each row. Rows of segments that are not there are
            left out, or as ``mode`` says.
        num_segments: how many; default one more than the largest number. Transformations need it.
        indices_are_sorted: a promise about ``segment_ids``, for speed on some devices.
        unique_indices: a promise that no number is in ``segment_ids`` twice.
        bucket_size: at most so many rows are reduced in one go, and then what these gave.
        mode: "drop" or "fill" (None): numbers of other segments are left out; "clip": they mean the
            nearest segment; "promise_in_bounds": there are none.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array [num_segments, ...] of the dtype of ``data``.

    Raises:
        ShapeError: ``segment_ids`` is not a vector with a number for each row.

    >>> import phalanx, phalanx.numpy as jnp
    >>> print(phalanx.ops.segment_max(jnp.arange(5.0), jnp.array([0, 0, 1, 1, 3])))
    [  1.   3. -inf   4.]
    """
    options = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode)
    return _reduced("segment_max", data, segment_ids, options)


@takes_out_sharding
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The least of the rows of each segment; of no rows the largest number of the dtype, inf.

    See ``segment_sum``.

    Args:
        data: rows, along the first dimension.
        segment_ids: [n], integers: the segment of each row. Rows of segments that are not there are
            left out, or as ``mode`` says.
        num_segments: how many; default one more than the largest number. Transformations need it.
        indices_are_sorted: a promise about ``segment_ids``, for speed on some devices.
        unique_indices: a promise that no number is in ``segment_ids`` twice.
        bucket_size: at most so many rows are reduced in one go, and then what these gave.
        mode: "drop" or "fill" (None): numbers of other segments are left out; "clip": they mean the
            nearest segment; "promise_in_bounds": there are none.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array [num_segments, ...] of the dtype of ``data``.

    Raises:
        ShapeError: ``segment_ids`` is not a vector with a number for each row.

    >>> import phalanx, phalanx.numpy as jnp
    >>> print(phalanx.ops.segment_min(jnp.arange(5.0), jnp.array([0, 0, 1, 1, 3])))
    [ 0.  2. inf  4.]
    """
    options = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode)
    return _reduced("segment_min", data, segment_ids, options)


# ---- all of them ----------------------------------------------------------------------------

# how rows are written, how parts come together, and what a segment without rows has
_REDUCTIONS: dict[str, tuple[Any, Callable[..., Any], Callable[[np.dtype], Any]]] = {
    "segment_sum": (ops.scatter_add, ops.reduce_sum, lambda dtype: 0),
    "segment_prod": (ops.scatter_mul, ops.reduce_prod, lambda dtype: 1),
    "segment_max": (ops.scatter_max, ops.reduce_max, ops.lowest),
    "segment_min": (ops.scatter_min, ops.reduce_min, ops.highest),
}


def _reduced(who: str, data: Any, segment_ids: Any, options: tuple[Any, ...]) -> Array:
    num_segments, is_sorted, unique, bucket_size, mode = options
    how = mode_of(who, mode, WRITE_MODES)
    ids = as_array(who, segment_ids)
    rows = _rows(who, as_array(who, data), ids)
    count = _count(who, segment_ids, num_segments)
    size = max(rows.shape[0], 1) if bucket_size is None else bucket_size
    if size < 1:
        raise ValueError(f"{who}: bucket_size must be a positive integer, got {bucket_size}")
    buckets = max(Blocks(rows.shape[0], size).length, 1)
    grid = (count,) if buckets == 1 else (buckets, count)
    write, join, empty = _REDUCTIONS[who]
    start = ops.full((*grid, *rows.shape[1:]), empty(rows.aval.dtype), rows.aval.dtype)
    out = write(
        start,
        _places(ids, size, buckets > 1),
        rows,
        numbers=_numbers(rows.ndim, len(grid)),
        mode=how,
        indices_are_sorted=is_sorted,
        unique_indices=unique,
    )
    return out if buckets == 1 else join(out, dims=(0,))


def _rows(who: str, data: Any, ids: Any) -> Any:
    """``data`` with a row for each of ``ids``; a number is one row for all."""
    if not dtypes.is_integer(ids.aval.dtype):
        raise TypeError(f"{who}: segment_ids must be integers, got {ids.aval}")
    rows = data if data.ndim else ops.broadcast_to(data, ids.shape)
    if ids.ndim != 1 or rows.shape[0] != ids.shape[0]:
        raise ShapeError(
            f"{who}: segment_ids must be a vector with a number for each row of data, got "
            f"{ids.aval} and {data.aval}"
        )
    return rows


def _count(who: str, segment_ids: Any, num_segments: Any) -> int:
    if num_segments is None:
        known = value_of(who, segment_ids, "give num_segments")
        if not known.size:
            raise ValueError(f"{who}: there are no rows that tell num_segments; give it")
        return max(int(known.max()) + 1, 0)
    count = integer(who, "num_segments", num_segments)
    if count < 0:
        raise ValueError(f"{who}: num_segments must be non-negative, got {count}")
    return count


def _numbers(ndim: int, places: int) -> ops.ScatterDimensionNumbers:
    """Rows of rank ``ndim`` into [segment, ...], or [bucket, segment, ...]."""
    dims = tuple(range(places))
    return ops.ScatterDimensionNumbers(tuple(range(1, ndim)), dims, dims)


def _places(ids: Any, size: int, in_buckets: bool) -> Any:
    """[n, 1] or [n, 2]: the bucket of each row, if there are several, and its segment."""
    n = ids.shape[0]
    wide = np.dtype("int32") if ids.aval.dtype.itemsize < 4 else ids.aval.dtype
    ids = convert(ids, wide)
    if not in_buckets:
        return ops.reshape(ids, shape=(n, 1))
    rows = ops.iota(dtype=wide, shape=(n,), dim=0)
    return ops.stack((ops.div(rows, ops.constant_like(rows, size)), ids), 1)


bound(sys.modules[__name__])
