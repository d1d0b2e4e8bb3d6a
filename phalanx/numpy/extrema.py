"""The greatest and the least, of two arrays element by element or over axes; and where they are."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import INEXACT
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.logic import isnan
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    convert,
    dims,
    literal,
    no_out,
    number_array,
    pair,
)
from phalanx.numpy.reductions import Axis, all, joined, masked, nan_as, reduced, with_dims
from phalanx.numpy.ufunc_methods import with_methods

# ---- of two arrays --------------------------------------------------------------------------


@with_methods()
@one_program
def maximum(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The larger of x and y, elementwise; nan where either is.

    Args:
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.maximum(jnp.arange(3), 1))
    [1 1 2]
    """
    no_out("maximum", out, where)
    return ops.max(*pair("maximum", x, y))


@with_methods()
@one_program
def minimum(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The smaller of x and y, elementwise; nan where either is.

    Args:
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.minimum(jnp.arange(3), 1))
    [0 1 1]
    """
    no_out("minimum", out, where)
    return ops.min(*pair("minimum", x, y))


@one_program
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, elementwise; where one is nan, the other.

    Args:
        x1: an array, or a number; the two broadcast.
        x2: an array, or a number; the two broadcast.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.fmax(jnp.array([1.0, jnp.nan]), 0.0))
    [1. 0.]
    """
    return _ignoring_nan("fmax", ops.max, x1, x2)


@one_program
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, elementwise; where one is nan, the other.

    Args:
        x1: an array, or a number; the two broadcast.
        x2: an array, or a number; the two broadcast.

    Returns:
        An array of the broadcast shape, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0))
    [0. 0.]
    """
    return _ignoring_nan("fmin", ops.min, x1, x2)


def _ignoring_nan(who: str, best: Any, x: Any, y: Any) -> Any:
    x, y = arrays(who, x, y)
    if x.aval.dtype not in INEXACT:
        return best(x, y)
    return ops.select(ops.ne(x, x), y, ops.select(ops.ne(y, y), x, best(x, y)))


@one_program
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The elements of x limited to the interval from ``min`` to ``max``; None is no limit.

    Args:
        x: an array, or a number.
        min: the lower limit; None for none.
        max: the upper limit; None for none.

    Returns:
        An array of the broadcast shape.

    >>> print(jnp.clip(jnp.arange(6), 1, 4))
    [1 1 2 3 4 4]
    """
    out = number_array("clip", x)
    if min is not None:
        out = maximum(min, out)
    if max is not None:
        out = minimum(max, out)
    return out


# ---- over axes ------------------------------------------------------------------------------


def _check_some(who: str, x: Any, axis: Any, where: Any) -> None:
    if where is not None:
        raise ValueError(f"{who}: with where, no element may be left; give initial=, too")
    if not x.aval.size and not builtins.all(x.aval.shape[d] for d in dims(who, axis, x)):
        raise ValueError(
            f"{who}: an array {x.aval} has no element to choose along axis {axis}; give initial="
        )


@one_program
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element over ``axis``; nan if there is one.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: joins the elements, and is the result of none; None: there must be elements.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        An array of the dtype of ``a``, without the axes that are reduced.

    Raises:
        ValueError: there is no element and no ``initial``; or ``where`` without ``initial``.

    >>> print(jnp.max(jnp.arange(6).reshape(2, 3), axis=1))
    [2 5]
    """
    return _extremum(_MAX, a, axis, out, keepdims, initial, where)


amax = max


@one_program
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element over ``axis``; nan if there is one.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: joins the elements, and is the result of none; None: there must be elements.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        An array of the dtype of ``a``, without the axes that are reduced.

    Raises:
        ValueError: there is no element and no ``initial``; or ``where`` without ``initial``.

    >>> print(jnp.min(jnp.arange(6).reshape(2, 3), axis=1))
    [0 3]
    """
    return _extremum(_MIN, a, axis, out, keepdims, initial, where)


amin = min


@one_program
def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The smallest and the largest element over ``axis``; see ``min`` and ``max``.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: joins the elements, and is the result of none; None: there must be elements.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        Two arrays of the dtype of ``a``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> [int(x) for x in jnp.minmax(jnp.array([3, 1, 2]))]
    [1, 3]
    """
    options = (axis, out, keepdims, initial, where)
    return min(a, *options), max(a, *options)


# name, reduction, identity, and the same of two arrays
_MAX = ("max", ops.reduce_max, ops.lowest, maximum)
_MIN = ("min", ops.reduce_min, ops.highest, minimum)


def _extremum(
    kind: tuple[Any, ...], a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    who, prim, identity, combine = kind
    no_out(who, out)
    x = as_array(who, a)
    x = convert(x, x.aval.dtype)
    if initial is None:
        _check_some(who, x, axis, where)
    total = reduced(prim, masked(x, where, identity(x.aval.dtype)), axis, keepdims)
    return total if initial is None else joined(combine, total, initial)


# ---- over axes, ignoring nan ----------------------------------------------------------------


@one_program
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element over ``axis`` that is not nan; nan if there is none.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: joins the elements, and is the result of none; None: there must be elements.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        An array of the dtype of ``a``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanmax(jnp.array([1.0, jnp.nan])))
    1.0
    """
    return _nan_extremum("nanmax", max, ops.lowest, a, axis, out, keepdims, initial, where)


@one_program
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element over ``axis`` that is not nan; nan if there is none.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: joins the elements, and is the result of none; None: there must be elements.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        An array of the dtype of ``a``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanmin(jnp.array([1.0, jnp.nan])))
    1.0
    """
    return _nan_extremum("nanmin", min, ops.highest, a, axis, out, keepdims, initial, where)


def _nan_extremum(
    who: str,
    reduce: Callable[..., Any],
    identity: Callable[..., Any],
    a: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    x = as_array(who, a)
    if x.aval.dtype not in INEXACT:
        return reduce(x, axis, out, keepdims, initial, where)
    best = reduce(nan_as(who, x, identity(x.aval.dtype)), axis, out, keepdims, initial, where)
    if initial is not None:
        return best
    nothing = all(isnan(x), axis, keepdims=keepdims)
    return ops.select(nothing, literal(best, np.nan), best)


# ---- positions of extrema -------------------------------------------------------------------


@one_program
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first largest element along ``axis``, or in the flattened array.

    A nan counts as larger than any number.

    Args:
        a: an array, or a number.
        axis: the axis along which to search; None: the array as a vector.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether the axis stays, with length 1; None and False: it does not.

    Returns:
        int32, without the axis; with ``keepdims`` it stays, with length 1.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.argmax(jnp.array([3, 7, 7])))
    1
    """
    return _position("argmax", ops.argmax, a, axis, out, keepdims)


@one_program
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first smallest element along ``axis``, or in the flattened array.

    A nan counts as smaller than any number.

    Args:
        a: an array, or a number.
        axis: the axis along which to search; None: the array as a vector.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether the axis stays, with length 1; None and False: it does not.

    Returns:
        int32, without the axis; with ``keepdims`` it stays, with length 1.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.argmin(jnp.array([3, 1, 1])))
    1
    """
    return _position("argmin", ops.argmin, a, axis, out, keepdims)


def _position(
    who: str, prim: Callable[..., Any], a: Any, axis: Any, out: Any, keepdims: Any
) -> Any:
    no_out(who, out)
    x = as_array(who, a)
    shape = x.aval.shape
    over = tuple(range(len(shape))) if axis is None else (ops.dimension(who, axis, len(shape)),)
    line = ops.reshape(x, shape=(x.aval.size,)) if axis is None else x
    if line.aval.shape[over[0] if axis is not None else 0] == 0:
        raise ValueError(f"{who}: an array {x.aval} has no element to choose along axis {axis}")
    place = prim(line, dim=0 if axis is None else over[0], index_dtype=dtypes.default_int())
    return with_dims(place, x, over) if keepdims else place


@one_program
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first largest element that is not nan; -1 if there is none.

    Args:
        a: an array, or a number.
        axis: the axis along which to search; None: the array as a vector.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether the axis stays, with length 1; None and False: it does not.

    Returns:
        int32, without the axis; with ``keepdims`` it stays, with length 1.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0])))
    2
    """
    return _nan_position("nanargmax", argmax, ops.lowest, a, axis, out, keepdims)


@one_program
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first smallest element that is not nan; -1 if there is none.

    Args:
        a: an array, or a number.
        axis: the axis along which to search; None: the array as a vector.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether the axis stays, with length 1; None and False: it does not.

    Returns:
        int32, without the axis; with ``keepdims`` it stays, with length 1.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanargmin(jnp.array([jnp.nan, 4.0, 3.0])))
    2
    """
    return _nan_position("nanargmin", argmin, ops.highest, a, axis, out, keepdims)


def _nan_position(
    who: str,
    find: Callable[..., Any],
    identity: Callable[..., Any],
    a: Any,
    axis: Any,
    out: Any,
    keepdims: Any,
) -> Any:
    x = as_array(who, a)
    if x.aval.dtype not in INEXACT:
        return find(x, axis, out, keepdims)
    place = find(nan_as(who, x, identity(x.aval.dtype)), axis, out, keepdims)
    nothing = all(isnan(x), axis, keepdims=bool(keepdims))
    return ops.select(nothing, literal(place, -1), place)
