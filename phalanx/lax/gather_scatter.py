"""Gather and scatter: reading and writing at positions that are data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.core.axes import Axis
from phalanx.core.primitive import Primitive
from phalanx.core.types import Array, typeof
from phalanx.lax.loops import while_loop
from phalanx.lax.operands import accept, integers
from phalanx.primitives.basis import full
from phalanx.primitives.domains import I32
from phalanx.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    canonical_mode,
    fill_value_of,
)
from phalanx.primitives.shape import dimensions
from phalanx.transforms.batch import batch, place_lanes

Mode = GatherScatterMode | str | None


def _numbers(who: str, numbers: Any, wanted: type) -> Any:
    if isinstance(numbers, wanted):
        return numbers
    raise TypeError(f"lax.{who}: dimension_numbers must be {wanted.__name__}, got {numbers!r}")


# ---- gather ---------------------------------------------------------------------------------


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Mode = None,
    fill_value: Any = None,
) -> Array:
    """The windows of the operand that begin at ``start_indices``.

    Args:
        operand: an array.
        start_indices: integers; the last dimension holds the coordinates of one start.
        dimension_numbers: how the dimensions correspond.
        slice_sizes: the lengths of a window, one for each dimension of the operand.
        unique_indices: your word that no start is given twice.
        indices_are_sorted: your word that they ascend.
        mode: for windows that reach outside: 'clip' (the default), 'fill' or
            'promise_in_bounds'.
        fill_value: a Python scalar for 'fill'; default NaN, the least integer, the greatest
            unsigned integer, or True.

    Returns:
        An array of the dtype of the operand.

    Raises:
        TypeError: indices are not integers.
        ValueError: the dimensions do not fit together.

    >>> rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> lax.gather(np.int32([[1, 2], [3, 4]]), np.int32([[1], [0], [1]]), rows, (1, 2))
    Array([[3, 4],
           [1, 2],
           [3, 4]], dtype=int32)
    """
    type = typeof(accept("gather", operand))
    return ops.gather(
        operand,
        accept("gather", start_indices),
        numbers=_numbers("gather", dimension_numbers, GatherDimensionNumbers),
        slice_sizes=integers("gather", "slice_sizes", slice_sizes),
        mode=canonical_mode("lax.gather", "clip" if mode is None else mode),
        fill=fill_value_of(type.dtype, fill_value),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
    )


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """The slices of ``src`` at vectors of positions ``idxs``, one for each of ``axes``.

    Args:
        src: an array.
        idxs: vectors of positions, all of one length.
        axes: the dimensions that they are positions in.

    Returns:
        An array of the dtype of ``src``.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.index_take(np.int32([[1, 2], [3, 4]]), (np.int32([1, 0]),), (0,))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    type = typeof(accept("index_take", src))
    dims = dimensions("lax.index_take", axes, type.ndim)
    rows = ops.stack([accept("index_take", i) for i in idxs], 1)
    numbers = GatherDimensionNumbers(tuple(range(1, type.ndim - len(dims) + 1)), dims, dims)
    sizes = tuple(1 if d in dims else n for d, n in enumerate(type.shape))
    return gather(src, rows, numbers, sizes, mode="clip")


# ---- scatter --------------------------------------------------------------------------------


def _scattered(
    prim: Primitive,
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Mode,
) -> Array:
    who = prim.name
    return prim(
        accept(who, operand),
        accept(who, scatter_indices),
        accept(who, updates),
        numbers=_numbers(who, dimension_numbers, ScatterDimensionNumbers),
        mode=canonical_mode(f"lax.{who}", "drop" if mode is None else mode),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
    )


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with windows of it replaced by ``updates``.

    Where several updates meet, one of them wins.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        updates: an array of the operand's dtype, a window for each start.
        dimension_numbers: how the dimensions correspond.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two updates meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or
            'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: indices are not integers, or dtypes or lengths differ.
        ValueError: the dimensions do not fit together.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(np.int32([1, 2, 3]), np.int32([[2], [0]]), np.int32([2, 7]), single)
    Array([7, 2, 2], dtype=int32)
    """
    return _scattered(
        ops.scatter,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with ``updates`` added to windows of it; see ``scatter``.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        updates: an array of the operand's dtype, a window for each start.
        dimension_numbers: how the dimensions correspond.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two updates meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: rank or dtype of the update differ.
        ValueError: the dimension numbers do not fit the arrays.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(np.int32([1, 2, 3]), np.int32([[2], [0]]), np.int32([2, 7]), single)
    Array([8, 2, 5], dtype=int32)
    """
    return _scattered(
        ops.scatter_add,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with ``updates`` subtracted from windows of it; see ``scatter``.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        updates: an array of the operand's dtype, a window for each start.
        dimension_numbers: how the dimensions correspond.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two updates meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: rank or dtype of the update differ.
        ValueError: the dimension numbers do not fit the arrays.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(np.int32([1, 2, 3]), np.int32([[2], [0]]), np.int32([2, 7]), single)
    Array([-6,  2,  1], dtype=int32)
    """
    updates = ops.neg(accept("scatter_sub", updates))
    return _scattered(
        ops.scatter_add,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with windows of it multiplied by ``updates``; see ``scatter``.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        updates: an array of the operand's dtype, a window for each start.
        dimension_numbers: how the dimensions correspond.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two updates meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: rank or dtype of the update differ.
        ValueError: the dimension numbers do not fit the arrays.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(np.int32([1, 2, 3]), np.int32([[2], [0]]), np.int32([2, 7]), single)
    Array([7, 2, 6], dtype=int32)
    """
    return _scattered(
        ops.scatter_mul,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with windows of it lowered to ``updates``; see ``scatter``.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        updates: an array of the operand's dtype, a window for each start.
        dimension_numbers: how the dimensions correspond.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two updates meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: rank or dtype of the update differ.
        ValueError: the dimension numbers do not fit the arrays.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(np.int32([1, 2, 3]), np.int32([[2], [0]]), np.int32([2, 7]), single)
    Array([1, 2, 2], dtype=int32)
    """
    return _scattered(
        ops.scatter_min,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with windows of it raised to ``updates``; see ``scatter``.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        updates: an array of the operand's dtype, a window for each start.
        dimension_numbers: how the dimensions correspond.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two updates meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: rank or dtype of the update differ.
        ValueError: the dimension numbers do not fit the arrays.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(np.int32([1, 2, 3]), np.int32([[2], [0]]), np.int32([2, 7]), single)
    Array([7, 2, 3], dtype=int32)
    """
    return _scattered(
        ops.scatter_max,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """The operand with ``func`` applied to the elements of windows of it; see ``scatter``.

    It is applied to an element as often as windows cover it: that many times are known only while
    running, so it differentiates in reverse only with ``unique_indices``.

    Args:
        operand: an array.
        scatter_indices: integers; the last dimension holds the coordinates of one start.
        func: of a scalar, to a scalar of the same dtype.
        dimension_numbers: how the dimensions correspond.
        update_shape: the shape that updates would have: that of all windows.
        indices_are_sorted: your word that the starts ascend.
        unique_indices: your word that no two windows meet.
        mode: for windows that reach outside: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: indices are not integers, or ``func`` changes the dtype.
        ValueError: the dimensions do not fit together.

    >>> single = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, where = np.float32([1, 2, 3]), np.int32([[2], [0], [2]])
    >>> lax.scatter_apply(x, where, lambda v: v * 10, single, update_shape=(3,))
    Array([ 10.,   2., 300.], dtype=float32)
    """
    type = typeof(accept("scatter_apply", operand))
    times = scatter_add(
        full(type.shape, 0, I32),
        scatter_indices,
        full(integers("scatter_apply", "update_shape", update_shape), 1, I32),
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )

    def applied(x: Any, so_often: Any) -> Any:
        chosen = ops.lt(full(type.shape, so_often, I32), times)
        # where it is not applied, a derivative of it that is infinite has no part in that of x
        out = _everywhere(func, ops.select(chosen, x, ops.stop_gradient(x)))
        if typeof(out).dtype != type.dtype:
            raise TypeError(
                f"lax.scatter_apply: func must keep the dtype {type.dtype}, but it gives "
                f"{typeof(out)}"
            )
        return ops.select(chosen, out, x)

    if unique_indices:
        return applied(operand, np.int32(0))
    most = ops.reduce_max(times, dims=tuple(range(type.ndim)))

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        so_often, x = state
        return ops.add(so_often, np.int32(1)), applied(x, so_often)

    return while_loop(lambda state: ops.lt(state[0], most), step, (full((), 0, I32), operand))[1]


def _everywhere(func: Callable[[Any], Any], x: Any) -> Any:
    """``func`` of each element of ``x``."""
    type = typeof(x)
    flat = ops.reshape(x, shape=(type.size,))

    def of_one(e: Any) -> list[Any]:
        return [func(e)]

    (out,), (dim,) = batch(of_one, Axis(None, type.size), [flat], [0])
    return ops.reshape(place_lanes(out, dim, 0, type.size), shape=type.shape)
