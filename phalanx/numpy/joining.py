"""Arrays put together and taken apart: concatenate, stack, split, tile, repeat."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.base.kinds import LIST, SEQUENCE, SLICE, is_iterable
from phalanx.base.lengths import integer, larger, length, slice_of, symbolic
from phalanx.base.source import user_location
from phalanx.control.one_program import one_program
from phalanx.core.trace import is_known, known_value
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.indexing import take
from phalanx.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    as_shape,
    convert,
    dim,
    dims,
    from_host,
    operand,
    promote_arrays,
    value_of,
)
from phalanx.numpy.sorting import searchsorted
from phalanx.numpy.subscripts import counted_from_front, write

_I32 = np.dtype("int32")

# ---- concatenate and stack ------------------------------------------------------------------


def _several(who: str, arrays: Any) -> list[Any]:
    """The arrays in a sequence, or along the first dimension of an array."""
    if isinstance(arrays, (Array, np.ndarray)):
        x = as_array(who, arrays)
        if not x.ndim:
            raise ValueError(f"{who}: a sequence of arrays is needed, got one array {x.aval}")
        if x.ndim == 1 and who == "concatenate":
            raise ValueError(
                f"{who}: a sequence of arrays is needed, got one array {x.aval}; write "
                f"{who}([x, y])"
            )
        parts = ops.split(x, (1,) * x.shape[0], 0) if x.shape[0] else ()
        every: list[Any] = [ops.squeeze(v, (0,)) for v in parts]
    elif is_iterable(arrays):
        every = list(arrays)
    else:
        raise TypeError(f"{who}: a sequence of arrays is needed, got {arrays!r}")
    if not every:
        raise ValueError(f"{who}: at least one array is needed, got an empty sequence")
    return every


@one_program
def concatenate(
    arrays: Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """The arrays one after the other along ``axis``; None flattens them first.

    Args:
        arrays: a sequence of arrays that differ along the axis at most.
        axis: the axis along which they are joined; None flattens them first.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    Raises:
        ValueError: they have different lengths in another dimension.

    >>> print(jnp.concatenate([jnp.arange(2), jnp.zeros(2, dtype=int)]))
    [0 1 0 0]
    """
    xs = promote_arrays("concatenate", _several("concatenate", arrays), dtype)
    if axis is None:
        xs, axis = [ops.reshape(x, shape=(x.size,)) for x in xs], 0
    return _joined("concatenate", xs, axis)


concat = concatenate


def _joined(who: str, xs: list[Any], axis: int) -> Any:
    if not xs[0].ndim:
        raise ValueError(f"{who}: arrays without dimensions cannot be joined; see jnp.stack")
    d = dim(who, axis, xs[0])
    first = xs[0].shape
    for x in xs[1:]:
        if x.ndim != len(first) or any(
            n != m for i, (n, m) in enumerate(zip(x.shape, first, strict=True)) if i != d
        ):
            raise ShapeError(
                f"{who}: arrays must have equal shapes but along axis {axis}, got {xs[0].aval} "
                f"and {x.aval}"
            )
    return ops.concatenate(*xs, dim=d) if len(xs) > 1 else xs[0]


@one_program
def stack(
    arrays: Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """The arrays, of one shape, along a new dimension ``axis``.

    Args:
        arrays: a sequence of arrays.
        axis: where the new dimension stands in the result.
        out: must be None: arrays are immutable, and results are returned.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    Raises:
        AxisError: there is no dimension ``axis``.
        ShapeError: the arrays have different shapes.

    >>> print(jnp.stack([jnp.arange(2), jnp.arange(2)], axis=1))
    [[0 0]
     [1 1]]
    """
    xs = promote_arrays("stack", _several("stack", arrays), dtype)
    if any(x.shape != xs[0].shape for x in xs):
        shapes = ", ".join(str(x.aval) for x in xs)
        raise ShapeError(f"stack: all arrays must have one shape, got {shapes}")
    return ops.stack(xs, ops.dimension("stack", axis, xs[0].ndim + 1))


@one_program
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of ``x`` along ``axis``, which they do not have.

    Args:
        x: an array with at least one dimension.
        axis: the axis that the parts do not have.

    Returns:
        A tuple of arrays, as many as ``x`` is long along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> [float(v) for v in jnp.unstack(jnp.array([1.0, 2.0]))]
    [1.0, 2.0]
    """
    x = as_array("unstack", x)
    d = dim("unstack", axis, x)
    return tuple(ops.squeeze(v, (d,)) for v in ops.split(x, (1,) * x.shape[d], d))


@one_program
def vstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays one below the other: along the first of at least two dimensions.

    Args:
        tup: a sequence of arrays.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    >>> print(jnp.vstack([jnp.arange(2), jnp.arange(2)]))
    [[0 1]
     [0 1]]
    """
    return concatenate([atleast_2d(x) for x in _several("vstack", tup)], 0, dtype)


@one_program
def hstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays side by side: along the second dimension, of vectors along the first.

    Args:
        tup: a sequence of arrays.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    >>> print(jnp.hstack([jnp.arange(2), jnp.arange(2)]))
    [0 1 0 1]
    """
    xs = [atleast_1d(x) for x in _several("hstack", tup)]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1, dtype)


@one_program
def dstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays one behind the other: along the third of at least three dimensions.

    Args:
        tup: a sequence of arrays.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    >>> jnp.dstack([jnp.zeros((2, 2)), jnp.ones((2, 2))]).shape
    (2, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in _several("dstack", tup)], 2, dtype)


@one_program
def column_stack(tup: Sequence[ArrayLike]) -> Array:
    """Vectors as the columns of a matrix, beside matrices.

    Args:
        tup: a sequence of arrays.

    Returns:
        A matrix.

    >>> print(jnp.column_stack([jnp.arange(2), jnp.zeros(2, dtype=int)]))
    [[0 0]
     [1 0]]
    """
    xs = [as_array("column_stack", x) for x in _several("column_stack", tup)]
    return concatenate([x if x.ndim > 1 else ops.reshape(x, shape=(x.size, 1)) for x in xs], 1)


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


def block(arrays: Any) -> Array:
    """One array of nested lists of blocks: the innermost lists run along the last dimension.

    Args:
        arrays: an array, or nested lists of them: the innermost are joined along the last axis.

    Returns:
        An array of the dtype to which the blocks are promoted.

    >>> print(jnp.block([[jnp.ones((1, 1)), jnp.zeros((1, 1))]]))
    [[1. 0.]]
    """
    depth = _depth(arrays)
    return _block(arrays, depth, 1)


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays), default=0) if isinstance(arrays, LIST) else 0


def _block(arrays: Any, depth: int, level: int) -> Any:
    if not isinstance(arrays, LIST):
        x = as_array("block", arrays)
        return ops.reshape(x, shape=(1,) * (depth - x.ndim) + x.shape) if x.ndim < depth else x
    parts = [_block(a, depth, level + 1) for a in arrays]
    return concatenate(parts, level - 1 - depth)


# ---- split ----------------------------------------------------------------------------------


@one_program
def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """``ary`` cut along ``axis`` into so many equal parts, or before the positions given.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: into how many parts of one length; or a sequence of the indices at
            which new parts begin.
        axis: the axis along which the array is cut.

    Returns:
        A list of arrays.

    Raises:
        ValueError: the length is not divisible by the number of parts; see ``array_split``.

    >>> [x.tolist() for x in jnp.split(jnp.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return _split("split", ary, indices_or_sections, axis)


@one_program
def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """``split``, where the first parts may be longer by one.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: into how many parts of one length; or a sequence of the indices at
            which new parts begin.
        axis: the axis along which the array is cut.

    Returns:
        A list of arrays.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> [x.tolist() for x in jnp.array_split(jnp.arange(3), 2)]
    [[0, 1], [2]]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def _split(who: str, ary: Any, sections: Any, axis: int, uneven: bool = False) -> list[Any]:
    x = as_array(who, ary)
    d = dim(who, axis, x)
    n = x.shape[d]
    if isinstance(sections, SEQUENCE) or np.ndim(sections):
        cuts = list(map(length, sections))
        ends = [*cuts, n]
        starts = [0, *cuts]
        bounds = [slice_of(slice(a, b), n) for a, b in zip(starts, ends, strict=True)]
        return [ops.slice_dim(x, a, a + count, d) for a, _, count in bounds]
    parts = operator.index(sections)
    if parts <= 0:
        raise ValueError(f"{who}: the number of parts must be positive, got {parts}")
    size, more = divmod(n, parts)
    if more and not uneven:
        raise ValueError(
            f"{who}: dimension {d} of an array {x.aval} is not divisible into {parts} equal parts; "
            "see array_split"
        )
    return ops.split(x, [size + (i < more) for i in range(parts)], d)


@one_program
def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """An array cut into several by rows: ``split`` along the first dimension.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: into how many parts of one length; or a sequence of the indices at
            which new parts begin.

    Returns:
        A list of arrays.

    Raises:
        ValueError: parts would differ in length; ``array_split`` allows that.

    >>> [x.shape for x in jnp.vsplit(jnp.zeros((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


@one_program
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """An array cut into several by columns: ``split`` along the second dimension, of a vector along
    the first.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: into how many parts of one length; or a sequence of the indices at
            which new parts begin.

    Returns:
        A list of arrays.

    >>> [x.shape for x in jnp.hsplit(jnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = as_array("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


@one_program
def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """``split`` along the third dimension.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: into how many parts of one length; or a sequence of the indices at
            which new parts begin.

    Returns:
        A list of arrays.

    >>> [x.shape for x in jnp.dsplit(jnp.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


# ---- tile and repeat ------------------------------------------------------------------------


@one_program
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """``A`` laid out ``reps`` times in each dimension.

    Args:
        A: the array that is repeated.
        reps: how often, along each axis; an integer: along the last.

    Returns:
        An array of the dtype of ``A``.

    >>> print(jnp.tile(jnp.arange(2), 3))
    [0 1 0 1 0 1]
    """
    x = as_array("tile", A)
    times = as_shape("tile", reps)
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    wide = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    x = ops.reshape(x, shape=shape)
    x = ops.broadcast(x, shape=wide, dims=tuple(range(1, 2 * ndim, 2)))
    return ops.reshape(x, shape=tuple(t * n for t, n in zip(times, shape, strict=True)))


@takes_out_sharding
def repeat(
    a: ArrayLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Each element of ``a`` along ``axis`` ``repeats`` times; None flattens the array first.

    Args:
        a: the array.
        repeats: a number for all elements, or one for each.
        axis: the axis along which elements are repeated; None flattens the array first.
        total_repeat_length: the length of the result, where ``repeats`` is traced: the last
            element is repeated, or elements are left out, to reach it.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of ``a``, whose ``axis`` has as many elements as there are
        repetitions; a vector if ``axis`` is None.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.repeat(jnp.array([1, 2]), 2))
    [1 1 2 2]
    """
    x = as_array("repeat", a)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    d = dim("repeat", axis, x)
    if isinstance(repeats, SEQUENCE):
        repeats = np.asarray(repeats)
    if np.ndim(repeats) == 0 and total_repeat_length is None:
        return _repeat_each(x, operator.index(repeats), d)
    if np.shape(repeats) not in ((), (1,), (x.shape[d],)):
        raise ShapeError(
            f"repeat: repeats has shape {np.shape(repeats)}, and axis {d} of the array has length "
            f"{x.shape[d]}, at {user_location()}; give one count for each element, or one for all"
        )
    if total_repeat_length is None:
        counts = np.broadcast_to(
            value_of("repeat", repeats, "give total_repeat_length="), (x.shape[d],)
        )
        places: Any = from_host(np.repeat(np.arange(x.shape[d]), counts).astype(np.int32))
    else:
        total = integer("repeat", "total_repeat_length", total_repeat_length)
        places = _repeated_places(repeats, x.shape[d], total)
    return take(x, places, d, mode="clip")


def _repeat_each(x: Any, times: int, d: int) -> Any:
    if times < 0:
        raise ValueError(f"repeat: repeats must not be negative, got {times}")
    shape = (*x.shape[: d + 1], times, *x.shape[d + 1 :])
    dims = tuple(i for i in range(len(shape)) if i != d + 1)
    return ops.merge_dims(ops.broadcast(x, shape=shape, dims=dims), d)


def _repeated_places(repeats: Any, length: int, total: int) -> Any:
    """The i-th place holds the element within whose share of the repetitions i lies."""
    counts = convert(as_array("repeat", repeats), np.dtype("int32"))
    ends = ops.cumsum(ops.broadcast_to(counts, (length,)), dim=0, reverse=False)
    return searchsorted(ends, ops.iota(dtype=np.dtype("int32"), shape=(total,), dim=0), "right")


# ---- delete and insert ----------------------------------------------------------------------


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
    gone = write(ops.full((n,), 0, _I32), where, "set", 1, "fill", {})
    places = ops.iota(dtype=_I32, shape=(n,), dim=0)
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
    places = convert(counted_from_front(as_array("insert", where), n), _I32)
    old = ops.iota(dtype=_I32, shape=(n,), dim=0)
    new = ops.broadcast_to(ops.reshape(places, shape=(where.size,)), (count,))
    keys = ops.concatenate(ops.add(ops.add(old, old), np.int32(1)), ops.add(new, new), dim=0)
    both = ops.iota(dtype=_I32, shape=(n + count,), dim=0)
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
