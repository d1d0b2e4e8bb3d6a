"""The greatest and the least: of two arrays element by element, and over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base.dtypes import INEXACT
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.logic import isnan
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    convert,
    literal,
    no_out,
    number_array,
    pair,
)
from phalanx.numpy.reductions import Axis, all, check_some, joined, masked, nan_as, reduced
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
        check_some(who, x, axis, where)
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
