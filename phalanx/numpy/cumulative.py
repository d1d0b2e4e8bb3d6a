"""Running sums and products: ``cumsum`` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import INEXACT
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    convert,
    literal,
    no_out,
)
from phalanx.numpy.reductions import integer_sum_dtype, nan_as, summand


@one_program
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The cumulative sums along ``axis``, or of the flattened array: out[i] = Σ a[j] over j ≤ i.

    Args:
        a: an array, or a number.
        axis: the axis along which; None flattens the array first.
        dtype: of computation and result; None for that of the elements, and int32 of booleans.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        Along an axis an array of the shape of ``a``; if ``axis`` is None, a vector.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.cumsum(jnp.arange(5)))
    [ 0  1  3  6 10]
    """
    return _running("cumsum", ops.cumsum, a, axis, dtype, out)


@one_program
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The cumulative products along ``axis``, or of the flattened array: Π a[j] over j ≤ i.

    Args:
        a: an array, or a number.
        axis: the axis along which; None flattens the array first.
        dtype: of computation and result; None for that of the elements, and int32 of booleans.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        Along an axis an array of the shape of ``a``; if ``axis`` is None, a vector.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.cumprod(jnp.array([1, 2, 3])))
    [1 2 6]
    """
    return _running("cumprod", ops.cumprod, a, axis, dtype, out)


def _running(who: str, prim: Callable[..., Any], a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    no_out(who, out)
    x = as_array(who, a)
    kind = _running_dtype(x) if dtype is None else dtypes.requested(dtype)
    x = summand(x, kind)
    if axis is None:
        x, axis = ops.reshape(x, shape=(x.aval.size,)), 0
    out = prim(x, dim=ops.dimension(who, axis, x.ndim), reverse=False)
    return convert(out, kind)


def _running_dtype(x: Any) -> np.dtype:
    return dtypes.default_int() if x.aval.dtype == np.bool_ else x.aval.dtype


@one_program
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """``cumsum`` as the array API standard names it; ``include_initial`` puts a 0 in front.

    Args:
        x: an array, or a number.
        axis: the axis along which; None flattens the array first.
        dtype: of computation and result; None for that of the elements, but at least 32 bits of
            integers.
        include_initial: whether a 0 stands in front of the sums.

    Returns:
        An array of the shape of ``x``, longer by one along ``axis`` with ``include_initial``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.cumulative_sum(jnp.arange(4), include_initial=True))
    [0 0 1 3 6]
    """
    return _cumulative("cumulative_sum", cumsum, 0, x, axis, dtype, include_initial)


@one_program
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """``cumprod`` as the array API standard names it; ``include_initial`` puts a 1 in front.

    Args:
        x: an array, or a number.
        axis: the axis along which; None flattens the array first.
        dtype: of computation and result; None for that of the elements, but at least 32 bits of
            integers.
        include_initial: whether a 1 stands in front of the products.

    Returns:
        An array of the shape of ``x``, longer by one along ``axis`` with ``include_initial``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.cumulative_prod(jnp.array([1, 2, 3])))
    [1 2 6]
    """
    return _cumulative("cumulative_prod", cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(
    who: str,
    run: Callable[..., Any],
    identity: int,
    x: Any,
    axis: Any,
    dtype: Any,
    include_initial: bool,
) -> Any:
    x = as_array(who, x)
    if not x.ndim:
        x = ops.expand_dims(x, (0,))
    if axis is None and x.ndim != 1:
        raise ValueError(f"{who}: axis is needed for an array {x.aval} that is no vector")
    dim = ops.dimension(who, 0 if axis is None else axis, x.ndim)
    kind = x.aval.dtype
    if dtype is None and kind not in INEXACT:
        dtype = integer_sum_dtype(kind)
    total = run(x, dim, dtype)
    if not include_initial:
        return total
    config = tuple((int(d == dim), 0, 0) for d in range(x.ndim))
    return ops.pad(total, literal(total, identity), config=config)


@one_program
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running sums along ``axis``, with nan as 0.

    Args:
        a: an array, or a number.
        axis: the axis along which; None flattens the array first.
        dtype: of computation and result; None for that of the elements, and int32 of booleans.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        Along an axis an array of the shape of ``a``; if ``axis`` is None, a vector.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0])))
    [1. 1. 3.]
    """
    return cumsum(nan_as("nancumsum", a, 0), axis, dtype, out)


@one_program
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Running products along ``axis``, with nan as 1.

    Args:
        a: an array, or a number.
        axis: the axis along which; None flattens the array first.
        dtype: of computation and result; None for that of the elements, and int32 of booleans.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        Along an axis an array of the shape of ``a``; if ``axis`` is None, a vector.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.nancumprod(jnp.array([2.0, jnp.nan, 2.0])))
    [2. 2. 4.]
    """
    return cumprod(nan_as("nancumprod", a, 1), axis, dtype, out)
