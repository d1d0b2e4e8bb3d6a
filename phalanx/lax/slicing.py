"""Slices: at positions that are known, and at positions that are data."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.numpy_kinds import GENERIC, is_ndarray
from phalanx.core.types import Array, ArrayLike, typeof
from phalanx.lax.operands import accept, integers, is_python
from phalanx.primitives.contract import as_dtype
from phalanx.primitives.domains import I32
from phalanx.primitives.shape import dimension, slice_dim

# ---- at positions that are known -------------------------------------------------------------


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """``operand[start:limit:stride]`` in every dimension.

    Args:
        operand: an array.
        start_indices: where it begins, per dimension.
        limit_indices: where it ends, per dimension: the first index that is not in it.
        strides: the steps, per dimension; None for 1.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ValueError: indices or strides are more or fewer than dimensions.

    >>> lax.slice(np.int32([1, 2, 3, 4]), (1,), (4,), (2,))
    Array([2, 4], dtype=int32)
    """
    return ops.slice(
        accept("slice", operand),
        start=integers("slice", "start_indices", start_indices),
        limit=integers("slice", "limit_indices", limit_indices),
        strides=None if strides is None else integers("slice", "strides", strides),
    )


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """``operand[start_index:limit_index:stride]`` along ``axis``; negative ones count backwards.

    Args:
        operand: an array.
        start_index: where it begins; None for the first.
        limit_index: the first index that is not in it; None for the end.
        stride: the distance between elements that are taken, at least 1.
        axis: the dimension along which it works.

    Returns:
        An array of the dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.slice_in_dim(np.int32([1, 2, 3, 4]), 1, -1)
    Array([2, 3], dtype=int32)
    """
    x = accept("slice_in_dim", operand)
    dim = dimension("lax.slice_in_dim", axis, typeof(x).ndim)
    n = typeof(x).shape[dim]
    start = 0 if start_index is None else index(start_index)
    limit = n if limit_index is None else index(limit_index)
    start, limit = start + n * (start < 0), limit + n * (limit < 0)
    return slice_dim(x, start, limit, dim, index(stride))


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The element ``index``, a Python integer, along ``axis``.

    Args:
        operand: an array.
        index: the position, a Python integer.
        axis: the dimension along which it works.
        keepdims: whether the dimension stays, with length 1.

    Returns:
        An array of the dtype of the operand.

    Raises:
        IndexError: there is no such element.

    >>> lax.index_in_dim(np.int32([[1, 2], [3, 4]]), -1, keepdims=False)
    Array([3, 4], dtype=int32)
    """
    x = accept("index_in_dim", operand)
    dim = dimension("lax.index_in_dim", axis, typeof(x).ndim)
    (position,) = integers("index_in_dim", "(index,)", (index,))
    n = typeof(x).shape[dim]
    if not -n <= position < n:
        raise IndexError(
            f"lax.index_in_dim: index {position} is out of bounds for dimension {dim} of "
            f"{typeof(x)}"
        )
    row = slice_dim(x, position % n, position % n + 1, dim)
    return row if keepdims else ops.squeeze(row, (dim,))


# ---- at positions that are data --------------------------------------------------------------


def _starts(who: str, start_indices: Any, shape: tuple[int, ...], negative: bool) -> list[Any]:
    """One scalar for each dimension, all of one dtype; negative ones count from the end."""
    if hasattr(start_indices, "shape"):
        start_indices = _elements(who, start_indices)
    starts = [accept(who, s) for s in start_indices]
    if len(starts) != len(shape):
        raise ValueError(
            f"lax.{who}: an operand of shape {shape} needs {len(shape)} start indices, got "
            f"{len(starts)}"
        )
    wide = [_wide(who, s) for s in starts]
    dtype = lattice.common(*((typeof(s).dtype, False) for s in wide))[0] if wide else I32
    return [
        _from_front(as_dtype(s, dtype), n) if negative else as_dtype(s, dtype)
        for s, n in zip(wide, shape, strict=True)
    ]


def _elements(who: str, starts: Any) -> list[Any]:
    """The elements of an array of one dimension, as scalars."""
    type = typeof(accept(who, starts))
    if type.ndim != 1:
        raise ValueError(f"lax.{who}: start indices must be scalars or a vector, got {type}")
    if is_ndarray(starts):
        return list(starts)
    parts = ops.split(starts, (1,) * type.size, 0)
    return [ops.reshape(p, shape=()) for p in parts]


def _wide(who: str, start: Any) -> Any:
    """``start`` with at least 32 bits, since narrower ones may not hold a dimension's length."""
    type = typeof(start)
    if type.shape or not dtypes.is_integer(type.dtype):
        raise TypeError(f"lax.{who}: a start index must be an integer scalar, got {type}")
    if isinstance(start, np.generic) or is_python(start):
        return dtypes.scalar(start, I32 if type.dtype.itemsize < 4 else type.dtype)
    return as_dtype(start, I32) if type.dtype.itemsize < 4 else start


def _from_front(start: Any, length: int) -> Any:
    dtype = typeof(start).dtype
    if dtypes.is_unsigned(dtype):
        return start
    if isinstance(start, GENERIC):
        at = int(start)
        return dtypes.scalar(at + length * (at < 0), dtype)
    return ops.select(ops.lt(start, 0), ops.add(start, length), start)


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The slice of lengths ``slice_sizes`` that begins at ``start_indices``, which may be traced.

    A start from which the slice would reach outside the operand is moved until it fits.

    Args:
        operand: an array.
        start_indices: a vector, or a sequence of scalars, one for each dimension.
        slice_sizes: Python integers, one for each dimension.
        allow_negative_indices: whether negative starts count from the end.

    Returns:
        An array of the dtype of the operand.

    Raises:
        TypeError: a start is not an integer.
        ValueError: there are too few or too many, or the slice is longer than the operand.

    >>> lax.dynamic_slice(np.int32([1, 2, 3, 4]), (2,), (2,))
    Array([3, 4], dtype=int32)
    """
    who = "dynamic_slice"
    shape = typeof(accept(who, operand)).shape
    starts = _starts(who, start_indices, shape, allow_negative_indices)
    return ops.dynamic_slice(operand, *starts, sizes=integers(who, "slice_sizes", slice_sizes))


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The slice of length ``slice_size`` from ``start_index`` on along ``axis``.

    Args:
        operand: an array.
        start_index: where the slice begins; moved back where it would reach outside.
        slice_size: how long it is.
        axis: the dimension in which the position lies.
        allow_negative_indices: whether negative positions count from the end.

    Returns:
        An array of the dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: the index is no integer scalar.

    >>> lax.dynamic_slice_in_dim(np.int32([1, 2, 3, 4]), 1, 2)
    Array([2, 3], dtype=int32)
    """
    who = "dynamic_slice_in_dim"
    shape = typeof(accept(who, operand)).shape
    dim = dimension(f"lax.{who}", axis, len(shape))
    starts = _along(start_index, dim, len(shape))
    sizes = tuple(slice_size if d == dim else n for d, n in enumerate(shape))
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def _along(start: Any, dim: int, ndim: int) -> list[Any]:
    return [start if d == dim else np.int32(0) for d in range(ndim)]


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The slice at ``index``, which may be traced, along ``axis``; the nearest where there is none.

    Args:
        operand: an array.
        index: the position, which may be traced.
        axis: the dimension in which the position lies.
        keepdims: whether the dimension stays, with length 1.
        allow_negative_indices: whether negative positions count from the end.

    Returns:
        An array of the dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: the index is no integer scalar.

    >>> lax.dynamic_index_in_dim(np.int32([[1, 2], [3, 4]]), 1, keepdims=False)
    Array([3, 4], dtype=int32)
    """
    who = "dynamic_index_in_dim"
    dim = dimension(f"lax.{who}", axis, typeof(accept(who, operand)).ndim)
    row = dynamic_slice_in_dim(
        operand, index, 1, dim, allow_negative_indices=allow_negative_indices
    )
    return row if keepdims else ops.squeeze(row, (dim,))


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand with ``update`` in place of the slice that begins at ``start_indices``.

    A start from which the update would reach outside the operand is moved until it fits.

    Args:
        operand: an array.
        update: an array of the same rank and dtype, nowhere longer.
        start_indices: a vector, or a sequence of scalars, one for each dimension.
        allow_negative_indices: whether negative starts count from the end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: rank or dtype of the update differ, or a start is not an integer.
        ValueError: there are too few or too many starts, or the update is too long.

    >>> lax.dynamic_update_slice(np.int32([1, 2, 3, 4]), np.int32([8, 9]), (1,))
    Array([1, 8, 9, 4], dtype=int32)
    """
    who = "dynamic_update_slice"
    type = typeof(accept(who, operand))
    starts = _starts(who, start_indices, type.shape, allow_negative_indices)
    if is_python(accept(who, update)):
        update = dtypes.scalar(update, type.dtype)
    return ops.dynamic_update_slice(operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand with ``update`` in place of the slice from ``start_index`` on along ``axis``.

    Args:
        operand: an array.
        update: what is written.
        start_index: where it begins; moved back where it would reach outside.
        axis: the dimension in which the position lies.
        allow_negative_indices: whether negative positions count from the end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: rank or dtype of the update differ.

    >>> lax.dynamic_update_slice_in_dim(np.int32([1, 2, 3, 4]), np.int32([9]), 3, 0)
    Array([1, 2, 3, 9], dtype=int32)
    """
    who = "dynamic_update_slice_in_dim"
    ndim = typeof(accept(who, operand)).ndim
    starts = _along(start_index, dimension(f"lax.{who}", axis, ndim), ndim)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The operand with ``update`` in place of the element ``index`` along ``axis``.

    ``update`` has length 1 along ``axis``, or lacks it.

    Args:
        operand: an array.
        update: what is written, with or without the dimension.
        index: the position, which may be traced.
        axis: the dimension in which the position lies.
        allow_negative_indices: whether negative positions count from the end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: rank or dtype of the update differ.

    >>> lax.dynamic_update_index_in_dim(np.int32([1, 2, 3, 4]), 9, 3, 0)
    Array([1, 2, 3, 9], dtype=int32)
    """
    who = "dynamic_update_index_in_dim"
    type = typeof(accept(who, operand))
    if is_python(accept(who, update)):
        update = dtypes.scalar(update, type.dtype)
    dim = dimension(f"lax.{who}", axis, type.ndim)
    if typeof(update).ndim == type.ndim - 1:
        update = ops.expand_dims(update, (dim,))
    return dynamic_update_slice_in_dim(
        operand, update, index, dim, allow_negative_indices=allow_negative_indices
    )
