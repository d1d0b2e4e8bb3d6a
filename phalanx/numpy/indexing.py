"""Elements at computed positions along an axis: take, put, choose, select and their kind."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.broadcasting import common_shape
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy import arithmetic
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    boolean,
    broadcast,
    convert,
    from_host,
    literal,
    no_out,
    promote_arrays,
    value_of,
)
from phalanx.numpy.searching import flatnonzero, where
from phalanx.numpy.subscripts import (
    WRITE_MODES,
    counted_from_front,
    fitted,
    getitem,
    known_mask,
    mode_of,
    write,
    written,
)

_I32 = np.dtype("int32")


@one_program
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The elements of ``a`` at ``indices`` along ``axis``, or of the flattened array.

    Args:
        a: the array.
        indices: integers, of any shape, which takes the place of ``axis`` in the result.
        axis: the axis along which indices count; None flattens the array first.
        out: must be None.
        mode: outside the array "fill" (the default) yields ``fill_value``, "clip" the nearest
            element (the first for all negative ones), "wrap" counts on from the beginning.
        unique_indices: a promise that no index comes twice.
        indices_are_sorted: a promise that indices increase.
        fill_value: by default nan, or the least integer.

    Returns:
        An array of the dtype of ``a``: its shape, with that of ``indices`` in place of ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0])))
    [30 10]
    """
    no_out("take", out)
    x = as_array("take", a)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    dim = ops.dimension("take", axis, x.ndim)
    places, mode = _places("take", as_array("take", indices), x.aval.shape[dim], mode)
    rest = range(x.ndim - 1)
    offset = tuple(d if d < dim else d + places.ndim for d in rest)
    return ops.gather(
        x,
        ops.reshape(places, shape=(*places.shape, 1)),
        numbers=ops.GatherDimensionNumbers(offset, (dim,), (dim,)),
        slice_sizes=tuple(1 if d == dim else n for d, n in enumerate(x.shape)),
        mode=mode,
        fill=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )


def _places(
    who: str, i: Any, length: int, mode: str | None, from_end: bool = True
) -> tuple[Any, str]:
    """Positions from the front, and the gather's mode, as ``mode`` has it.

    Negative ones count from the end where ``from_end`` says so.
    """
    if not dtypes.is_integer(i.aval.dtype):
        raise TypeError(f"{who}: indices must be integers, got {i.aval}")
    if mode == "wrap":
        return arithmetic.remainder(convert(i, _I32), builtins.max(length, 1)), "promise"
    if mode == "clip":
        return convert(i, i.aval.dtype), "clip"
    modes = {None: "fill", "fill": "fill", "promise_in_bounds": "promise", "wrap": "", "clip": ""}
    return counted_from_front(i, length) if from_end else i, mode_of(who, mode, modes)


@one_program
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """The elements at ``indices`` along ``axis``: out[.., i, ..] = arr[.., indices[.., i, ..], ..].

    The other dimensions of both broadcast. See ``take`` for ``mode``. Without
    ``wrap_negative_indices`` negative ones lie outside, and do not count from the end.

    Args:
        arr: an array.
        indices: integers; the other dimensions broadcast with those of the array.
        axis: the axis along which indices count; None flattens the array first.
        mode: outside the array "fill" (the default) yields ``fill_value``, "clip" the nearest
            element (the first for all negative ones), "wrap" counts on from the beginning.
        fill_value: by default nan, or the least integer.
        wrap_negative_indices: whether negative indices count from the end, and are not outside.

    Returns:
        An array of the dtype of ``arr``, as long along ``axis`` as ``indices``.

    Raises:
        AxisError: there is no dimension ``axis``.
        ValueError: array and indices differ in their numbers of dimensions.

    >>> x = jnp.array([[30, 10, 20]])
    >>> print(jnp.take_along_axis(x, jnp.argsort(x), axis=1))
    [[10 20 30]]
    """
    x, i = as_array("take_along_axis", arr), as_array("take_along_axis", indices)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    dim = ops.dimension("take_along_axis", axis, x.ndim)
    x, i = _aligned("take_along_axis", x, i, dim)
    if wrap_negative_indices and mode == "clip" and dtypes.is_integer(i.aval.dtype):
        i = counted_from_front(i, x.shape[dim])
    n = x.shape[dim]
    places, mode = _places("take_along_axis", i, n, mode, wrap_negative_indices)
    others = tuple(d for d in range(x.ndim) if d != dim)
    return ops.gather(
        x,
        ops.reshape(places, shape=(*places.shape, 1)),
        numbers=ops.GatherDimensionNumbers((), (dim,), (dim,), others, others),
        slice_sizes=(1,) * x.ndim,
        mode=mode,
        fill=fill_value,
    )


def _aligned(who: str, x: Any, i: Any, dim: int) -> tuple[Any, Any]:
    """Both in the shape that their dimensions other than ``dim`` broadcast to."""
    if x.ndim != i.ndim:
        raise ValueError(
            f"{who}: array and indices must have equally many dimensions, got {x.aval} and {i.aval}"
        )
    outer = [tuple(1 if d == dim else n for d, n in enumerate(v.shape)) for v in (x, i)]
    shape = common_shape(who, *outer)
    return tuple(  # type: ignore[return-value]
        ops.broadcast_to(v, (*shape[:dim], v.shape[dim], *shape[dim + 1 :])) for v in (x, i)
    )


@one_program
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """``arr`` with arr[.., indices[.., i, ..], ..] = values[.., i, ..], as a new array.

    Args:
        arr: an array.
        indices: integers; the other dimensions broadcast with those of the array.
        values: what is written; broadcasts with the indices.
        axis: the axis along which it works, counted from the end if negative.
        inplace: must be False: arrays are immutable, and the changed array is returned.
        mode: what an index outside of the axis means.

    Returns:
        An array of the shape and dtype of ``arr``.

    Raises:
        AxisError: there is no dimension ``axis``.
        ValueError: array and indices differ in their numbers of dimensions.

    >>> x = jnp.array([[10, 30, 20]])
    >>> print(jnp.put_along_axis(x, jnp.array([[1]]), 99, axis=1, inplace=False))
    [[10 99 20]]
    """
    _not_in_place("put_along_axis", inplace)
    x, i = as_array("put_along_axis", arr), as_array("put_along_axis", indices)
    shape = x.shape
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    dim = ops.dimension("put_along_axis", axis, x.ndim)
    _, i = _aligned("put_along_axis", x, i, dim)
    chosen = mode_of("put_along_axis", mode, WRITE_MODES)
    places = counted_from_front(i, x.shape[dim])
    others = tuple(d for d in range(x.ndim) if d != dim)
    out = ops.scatter(
        x,
        ops.reshape(places, shape=(*places.shape, 1)),
        fitted(written(x, values), places.shape),
        numbers=ops.ScatterDimensionNumbers((), (dim,), (dim,), others, others),
        mode=chosen,
    )
    return ops.reshape(out, shape=shape)


def put(
    a: ArrayLike,
    ind: ArrayLike,
    v: ArrayLike,
    mode: str | None = None,
    *,
    inplace: bool = True,
) -> Array:
    """``a`` with the elements at ``ind`` of the flattened array set to ``v``, as a new array.

    ``mode`` "clip" (the default) or "wrap" says what indices outside mean.

    Args:
        a: an array, or a number.
        ind: positions in the array as a vector.
        v: what is written; repeated if it is shorter.
        mode: "clip" or "wrap": what positions outside mean.
        inplace: must be False: arrays are immutable, and the changed array is returned.

    Returns:
        An array of the shape and dtype of ``a``.

    >>> print(jnp.put(jnp.zeros(4), jnp.array([0, 2]), 5.0, inplace=False))
    [5. 0. 5. 0.]
    """
    _not_in_place("put", inplace)
    x, i, values = as_array("put", a), as_array("put", ind), as_array("put", v)
    flat, i = ops.reshape(x, shape=(x.size,)), ops.reshape(i, shape=(i.size,))
    if mode == "wrap":
        i = arithmetic.remainder(i, builtins.max(x.size, 1))
    chosen = mode_of("put", None if mode == "wrap" else mode or "clip", WRITE_MODES)
    values = ops.reshape(values, shape=(values.size,))
    if values.size and values.size != i.size:  # they are repeated, or the last ones unused
        values = getitem(values, np.arange(i.size) % values.size)
    out = write(flat, i, "set", values, chosen, {})
    return ops.reshape(out, shape=x.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """``arr`` with ``vals``, again and again, where ``mask`` holds, as a new array.

    Args:
        arr: an array.
        mask: booleans, of the shape of ``arr``.
        vals: a vector.
        inplace: must be False: arrays are immutable, and the changed array is returned.

    Returns:
        An array of the shape and dtype of ``arr``.

    Raises:
        ValueError: the mask is not as large as the array.

    >>> print(jnp.place(jnp.arange(4), jnp.array([1, 0, 1, 1]), jnp.array([7, 8]), inplace=False))
    [7 1 8 7]
    """
    _not_in_place("place", inplace)
    return _placed(arr, mask, vals)


@one_program
def _placed(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike) -> Array:
    x, marks, values = (as_array("place", v) for v in (arr, mask, vals))
    if marks.size != x.size or not values.size:
        raise ValueError(
            f"place: a mask as large as the array and values are needed, got {marks.aval}, "
            f"{values.aval} and {x.aval}"
        )
    marks = ops.reshape(convert(marks, np.dtype(bool)), shape=(x.size,))
    number = ops.cumsum(convert(marks, np.dtype("int32")), dim=0, reverse=False) - 1
    chosen = getitem(ops.reshape(values, shape=(values.size,)), number % values.size)
    flat = ops.select(marks, convert(chosen, x.dtype, x.weak_type), ops.reshape(x, shape=(x.size,)))
    return ops.reshape(flat, shape=x.shape)


def _not_in_place(who: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{who}: arrays are immutable; pass inplace=False and use the result")


@one_program
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """``a`` with its main diagonal set to ``val``, which may be a vector, as a new array.

    Args:
        a: an array of at least two dimensions.
        val: what is written: a number, or a vector, which is repeated.
        wrap: must be False: the diagonal ends with the square part of a tall matrix.
        inplace: must be False: arrays are immutable, and the changed array is returned.

    Returns:
        An array of the shape and dtype of ``a``.

    Raises:
        ValueError: ``a`` is no matrix, nor an array whose lengths are equal; or ``wrap`` is True.

    >>> print(jnp.fill_diagonal(jnp.zeros((2, 2), dtype=int), 7, inplace=False))
    [[7 0]
     [0 7]]
    """
    _not_in_place("fill_diagonal", inplace)
    x = as_array("fill_diagonal", a)
    if wrap:
        raise ValueError("fill_diagonal: wrap=True is not supported")
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        raise ValueError(
            f"fill_diagonal: a matrix, or an array whose lengths are equal, is needed, got {x.aval}"
        )
    along = np.arange(builtins.min(x.shape))
    values = as_array("fill_diagonal", val)
    if values.ndim:
        values = getitem(ops.reshape(values, shape=(values.size,)), along % values.size)
    return write(x, (along,) * x.ndim, "set", values, "promise", {})


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices of ``a`` along ``axis`` at which the vector ``condition`` holds.

    Args:
        condition: for each slice, whether it is wanted. It must be known unless ``size`` is given.
        a: the array.
        axis: the axis along which slices lie; None flattens the array first.
        size: how many slices the result has: missing ones are filled, others left out.
        fill_value: what they are filled with.
        out: must be None.

    Returns:
        An array whose ``axis`` has length ``size``, or as many elements as conditions hold; a
        vector if ``axis`` is None.

    Raises:
        ValueError: ``condition`` is no vector.
        IndexError: it holds beyond the end of ``a``.

    >>> print(jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3])))
    [1 3]
    """
    no_out("compress", out)
    mask, x = boolean("compress", condition), as_array("compress", a)
    if mask.ndim != 1:
        raise ValueError(f"compress: the condition must be a vector, got {mask.aval}")
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.size,)), 0
    n = x.shape[ops.dimension("compress", axis, x.ndim)]
    if size is None:
        chosen = np.flatnonzero(known_mask(mask)).astype(np.int32)
        if chosen.size and chosen[-1] >= n:
            raise IndexError(
                f"compress: the condition holds at position {chosen[-1]}, but axis {axis} of the "
                f"array {x.aval} has length {n}"
            )
        return take(x, from_host(chosen), axis, mode="clip")
    chosen = flatnonzero(mask, size=size, fill_value=n)
    picked = take(x, chosen, axis, mode="clip")
    missing = ops.ge(chosen, literal(chosen, n))
    across = ops.broadcast(missing, shape=picked.shape, dims=(axis % x.ndim,))
    fill = convert(as_array("compress", fill_value), x.aval.dtype, x.aval.weak)
    return ops.select(across, ops.broadcast_to(fill, picked.shape), picked)


def choose(
    a: ArrayLike, choices: Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Elements of the choice that ``a`` names, choices[a[i]][i]; ``mode`` says what others mean.

    Args:
        a: the number of the choice, for each element.
        choices: the arrays to choose from; all broadcast.
        out: must be None: arrays are immutable, and results are returned.
        mode: what other numbers mean: "raise", which needs known ones, "wrap" or "clip".

    Returns:
        An array of the shape to which ``a`` and the choices broadcast.

    Raises:
        ValueError: with ``mode`` "raise", which needs known indices, there are others.

    >>> print(jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([3, 4])], mode="clip"))
    [3 2]
    """
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"choose: mode must be 'clip' or 'wrap', got {mode!r}")
    index = as_array("choose", a)
    last = len(choices) - 1
    if mode == "raise":
        known = value_of("choose", index, "use mode='clip' or 'wrap'")
        if ((known < 0) | (known > last)).any():
            raise ValueError(
                f"choose: indices must lie between 0 and {last}, got {known.min()} to "
                f"{known.max()}; use mode='clip' or 'wrap'"
            )
    elif mode == "clip":  # negative ones, too, do not count from the end
        index = ops.clamp(literal(index, 0), index, literal(index, last))
    stacked = broadcast("choose", [as_array("choose", c) for c in choices])
    rows = ops.stack([convert(c, lattice.result_type(*stacked)) for c in stacked], 0)
    shape = common_shape("choose", index.shape, rows.shape[1:])
    wide = (*rows.shape[:1], *[1] * (len(shape) + 1 - rows.ndim), *rows.shape[1:])
    rows = ops.broadcast_to(ops.reshape(rows, shape=wide), (len(choices), *shape))
    index = ops.reshape(ops.broadcast_to(index, shape), shape=(1, *shape))
    chosen = take_along_axis(rows, index, 0, mode="wrap" if mode == "wrap" else "clip")
    return ops.reshape(chosen, shape=shape)


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """The choice beside the first condition that holds, else ``default``, elementwise.

    Args:
        condlist: conditions, arrays of booleans.
        choicelist: as many arrays; all broadcast.
        default: the element where no condition holds.

    Returns:
        An array of the broadcast shape.

    Raises:
        ValueError: there are not as many choices as conditions, or none.

    >>> x = jnp.arange(4)
    >>> print(jnp.select([x < 1, x < 3], [x, 10 * x], -1))
    [ 0 10 20 -1]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select: as many choices as conditions are needed, at least one, got "
            f"{len(choicelist)} and {len(condlist)}"
        )
    *choices, out = promote_arrays("select", [*choicelist, default])
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        out = where(condition, choice, out)
    return out
