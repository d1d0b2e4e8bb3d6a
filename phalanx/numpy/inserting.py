"""Elements added and removed: append, insert, delete, trim zeros."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.kinds import SEQUENCE, SLICE
from phalanx.base.lengths import larger, symbolic
from phalanx.control.one_program import one_program
from phalanx.core.trace import is_known, known_value
from phalanx.core.types import Array
from phalanx.numpy.indexing import take
from phalanx.numpy.joining import concatenate
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    convert,
    dim,
    dims,
    from_host,
    operand,
    value_of,
)
from phalanx.numpy.subscripts import counted_from_front, write
from phalanx.primitives.domains import I32


@one_program
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """``values`` after ``arr`` along ``axis``; None flattens both first.

    Args:
        arr: an array.
        values: an array; with an axis, of the same shape but along it.
        axis: the axis along which; None flattens both first.

    Returns:
        An array of the dtype to which both are promoted.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.append(jnp.arange(2), jnp.array([5])))
    [0 1 5]
    """
    return concatenate([as_array("append", arr), as_array("append", values)], axis)


def delete(
    arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """``arr`` without the elements at ``obj``, positions or a slice, along ``axis``.

    The positions and the length must be known, unless it is one position, or
    ``assume_unique_indices`` promises that none comes twice.

    Args:
        arr: an array.
        obj: positions along the axis: an integer, several, or a slice.
        axis: the axis along which; None flattens the array first.
        assume_unique_indices: a promise that no position comes twice.

    Returns:
        An array whose ``axis`` is shorter by what was taken out; a vector if ``axis`` is None.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.delete(jnp.arange(4), 1))
    [0 2 3]
    """
    x = as_array("delete", arr)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    d = dim("delete", axis, x)
    n = x.shape[d]
    if not isinstance(obj, SLICE):
        obj = operand("delete", _as_positions(obj))
        differ = assume_unique_indices or not np.ndim(obj)
        if differ and (symbolic((n,)) or not is_known(obj)):
            return take(x, _all_but(n, as_array("delete", obj)), d, mode="clip")
        obj = value_of("delete", obj, _REMEDY)
    ops.need_numbers("delete", "the length from which positions are taken", (n,), _REMEDY)
    places = np.delete(np.arange(operator.index(n), dtype=np.int32), obj)
    return take(x, from_host(places), d, mode="clip")


_REMEDY = "give known positions, or assume_unique_indices=True if none comes twice"


def _all_but(n: int, where: Any) -> Any:
    """The positions of ``n`` elements that are not in ``where``, integers that differ."""
    if not dtypes.is_integer(where.aval.dtype):
        raise TypeError(f"delete: positions must be integers here, got {where.aval}")
    gone = write(ops.full((n,), 0, I32), where, "set", 1, "fill", {})
    places = ops.iota(dtype=I32, shape=(n,), dim=0)
    _, ordered = ops.sort(gone, places, dim=0, num_keys=1, stable=True)
    return ops.slice_dim(ordered, 0, larger(n - where.size, 0), 0)


def _as_positions(obj: Any) -> Any:
    return np.asarray(obj, np.int32) if isinstance(obj, SEQUENCE) else obj


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """``arr`` with ``values`` inserted before the positions ``obj`` along ``axis``.

    Positions that are traced are limited to the array.

    Args:
        arr: an array.
        obj: positions before which to insert: an integer, several, or a slice.
        values: what is inserted; broadcasts to the place.
        axis: the axis along which; None flattens the array first.

    Returns:
        An array whose ``axis`` is longer by what was inserted; a vector if ``axis`` is None.

    Raises:
        IndexError: a known position lies outside of it.

    >>> print(jnp.insert(jnp.arange(3), 1, 9))
    [0 9 1 2]
    """
    x = as_array("insert", arr)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    d = dim("insert", axis, x)
    n = x.shape[d]
    new = convert(as_array("insert", values), x.aval.dtype, x.aval.weak)
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n))
    where = operand("insert", _as_positions(obj))
    where = where if isinstance(where, Array) else np.asarray(where)
    count = math.prod(where.shape)
    if not where.ndim:  # all of the values go to one place
        new = ops.reshape(new, shape=(1,) * (x.ndim - new.ndim) + new.shape)
        new = ops.move(new, 0, d)
        count = new.shape[d]
    target = tuple(count if i == d else m for i, m in enumerate(x.shape))
    both = ops.concatenate(x, ops.broadcast_to(new, target), dim=d)
    return take(both, _order_with_inserted(n, where, count), d, mode="clip")


def _order_with_inserted(n: Any, where: Any, count: int) -> Any:
    """The order in which ``n`` elements and ``count`` more behind them come, if these are put
    before the positions ``where``."""
    if is_known(where) and isinstance(n, int):
        places = np.broadcast_to(known_value(where), (count,))
        order = np.insert(np.arange(n), places, np.arange(n, n + count))
        return from_host(order.astype(np.int32))
    places = convert(counted_from_front(as_array("insert", where), n), I32)
    old = ops.iota(dtype=I32, shape=(n,), dim=0)
    new = ops.broadcast_to(ops.reshape(places, shape=(where.size,)), (count,))
    keys = ops.concatenate(ops.add(ops.add(old, old), np.int32(1)), ops.add(new, new), dim=0)
    both = ops.iota(dtype=I32, shape=(n + count,), dim=0)
    return ops.sort(keys, both, dim=0, num_keys=1, stable=True)[1]


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """An array, whose elements are known, without the zeros at its front ("f") and back ("b").

    Args:
        filt: the array.
        trim: at which ends.
        axis: along which; None is all. Along each, slices that are zero everywhere are cut off.

    Returns:
        An array of the dtype of ``filt``.

    Raises:
        ValueError: ``trim`` has other letters.

    >>> print(jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0])))
    [1 0 2]
    >>> print(jnp.trim_zeros(jnp.array([[0, 0], [0, 5]])))
    [[5]]
    """
    x = as_array("trim_zeros", filt)
    if set(trim.lower()) - set("fb"):
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    used = np.argwhere(value_of("trim_zeros", x, "slice it instead"))
    for d in dims("trim_zeros", axis, x):
        n = x.shape[d]
        first, last = (used[:, d].min(), used[:, d].max() + 1) if len(used) else (n, n)
        low = int(first) if "f" in trim.lower() else 0
        high = int(last) if "b" in trim.lower() else n
        x = ops.slice_dim(x, min(low, high), high, d)
    return x
