"""Sums and products of elements, whether all or any are true, and how many.

Everywhere ``axis`` is one axis, several, or None for all; ``keepdims`` leaves the reduced ones
with length 1; ``where`` says which elements take part, and ``initial`` joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import INEXACT, accumulator
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import add as add_arrays
from phalanx.numpy.arithmetic import multiply as multiply_arrays
from phalanx.numpy.logic import isnan
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    boolean,
    convert,
    dims,
    literal,
    no_out,
    number_array,
)
from phalanx.numpy.searching import where as choose

Axis = int | Sequence[int] | None

# ---- sums and products ----------------------------------------------------------------------


@one_program
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of the elements over ``axis``; booleans and small integers are summed in 32 bits.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, but at least 32 bits of integers.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: a number that the sum begins with; None for 0.
        where: which elements take part: booleans that broadcast with the array; None for all.
        promote_integers: whether booleans and small integers are widened to the default integers.

    Returns:
        An array of ``dtype``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.sum(jnp.arange(6).reshape(2, 3), axis=0))
    [3 5 7]
    """
    no_out("sum", out)
    x, kind = _summand("sum", a, dtype, promote_integers)
    total = reduced(ops.reduce_sum, masked(x, where, 0), axis, keepdims)
    total = convert(total, kind)
    return total if initial is None else joined(add_arrays, total, initial)


@one_program
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product of the elements over ``axis``; booleans and small integers in 32 bits.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, but at least 32 bits of integers.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: a number that the product begins with; None for 1.
        where: which elements take part: booleans that broadcast with the array; None for all.
        promote_integers: whether booleans and small integers are widened to the default integers.

    Returns:
        An array of ``dtype``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.prod(jnp.array([1, 2, 3, 4])))
    24
    """
    no_out("prod", out)
    x, kind = _summand("prod", a, dtype, promote_integers)
    total = reduced(ops.reduce_prod, masked(x, where, 1), axis, keepdims)
    total = convert(total, kind)
    return total if initial is None else joined(multiply_arrays, total, initial)


def _summand(who: str, a: Any, dtype: Any, promote_integers: bool) -> tuple[Any, np.dtype]:
    """``a`` in the dtype in which it is accumulated, and the dtype of the result."""
    x = number_array(who, a)
    kind = x.aval.dtype if dtype is None else dtypes.requested(dtype)
    if dtype is None and promote_integers and kind not in INEXACT:
        kind = integer_sum_dtype(kind)
    return summand(x, kind), kind


def summand(x: Any, kind: np.dtype) -> Any:
    """``x``, which is summed up as ``kind``, in the dtype that the sum is made in: bools are
    counted."""
    if kind == np.bool_:
        return convert(convert(x, kind), dtypes.default_int())
    return convert(x, accumulator(kind))


def integer_sum_dtype(dtype: np.dtype) -> np.dtype:
    unsigned = dtypes.is_unsigned(dtype)
    default = dtypes.default_uint() if unsigned else dtypes.default_int()
    return dtype if dtype.itemsize > default.itemsize else default


def masked(x: Any, mask: Any, identity: Any) -> Any:
    """``x`` where ``mask`` holds or is None, the constant ``identity`` elsewhere."""
    if mask is None:
        return x
    return convert(choose(boolean("where", mask), x, literal(x, identity)), x.aval.dtype)


def reduced(prim: Callable[..., Any], x: Any, axis: Any, keepdims: bool) -> Any:
    if type(axis) is int and -x.ndim <= axis < x.ndim:
        over: tuple[int, ...] = (axis % x.ndim,)
    else:
        over = dims(prim.name.removeprefix("reduce_"), axis, x)  # type: ignore[attr-defined]
    total = prim(x, dims=over) if over else number_array(prim.name, x)  # type: ignore[attr-defined]
    return with_dims(total, x, over) if keepdims else total


def with_dims(total: Any, x: Any, over: tuple[int, ...]) -> Any:
    return ops.reshape(
        total, shape=tuple(1 if i in over else n for i, n in enumerate(x.aval.shape))
    )


def joined(combine: Callable[..., Any], total: Any, initial: Any) -> Any:
    return combine(total, convert(as_array("initial", initial), total.aval.dtype))


# ---- truth ----------------------------------------------------------------------------------


@one_program
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements over ``axis`` are not zero.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        Booleans, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> bool(jnp.all(jnp.array([True, False])))
    False
    """
    no_out("all", out)
    x = boolean("all", a)
    return reduced(ops.reduce_and, masked(x, where, True), axis, keepdims)


@one_program
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether an element over ``axis`` is not zero.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        Booleans, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> bool(jnp.any(jnp.array([True, False])))
    True
    """
    no_out("any", out)
    x = boolean("any", a)
    return reduced(ops.reduce_or, masked(x, where, False), axis, keepdims)


@one_program
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements over ``axis`` that are not zero.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.

    Returns:
        int32, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.count_nonzero(jnp.array([0, 3, 5])))
    2
    """
    return sum(boolean("count_nonzero", a), axis, keepdims=keepdims)


# ---- the same, ignoring nan -----------------------------------------------------------------


@one_program
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum of the elements over ``axis``, with nan as 0.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, but at least 32 bits of integers.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: a number that the sum begins with; None for 0.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        An array of ``dtype``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nansum(jnp.array([1.0, jnp.nan])))
    1.0
    """
    return sum(nan_as("nansum", a, 0), axis, dtype, out, keepdims, initial, where)


@one_program
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product of the elements over ``axis``, with nan as 1.

    Args:
        a: an array, or a number.
        axis: the axis or axes that are reduced, counted from the end if negative; None for all.
        dtype: of computation and result; None for that of ``a``, but at least 32 bits of integers.
        out: must be None: arrays are immutable, and results are returned.
        keepdims: whether axes that are reduced stay, with length 1, so that the result broadcasts.
        initial: a number that the product begins with; None for 1.
        where: which elements take part: booleans that broadcast with the array; None for all.

    Returns:
        An array of ``dtype``, without the axes that are reduced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nanprod(jnp.array([2.0, jnp.nan])))
    2.0
    """
    return prod(nan_as("nanprod", a, 1), axis, dtype, out, keepdims, initial, where)


def nan_as(who: str, a: Any, value: Any) -> Any:
    """``a`` with nan replaced by the constant ``value``."""
    x = as_array(who, a)
    return ops.select(isnan(x), literal(x, value), x) if x.aval.dtype in INEXACT else x
