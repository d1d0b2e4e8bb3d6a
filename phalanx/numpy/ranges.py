"""Numbers evenly spaced, or so that their logarithms are; grids, and functions of positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lengths
from phalanx.base.dtypes import INTEGERS
from phalanx.base.kinds import SEQUENCE
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import literal, over, power
from phalanx.numpy.creation import on_device
from phalanx.numpy.index_arrays import indices
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    arrays,
    as_array,
    convert,
    from_host,
)
from phalanx.numpy.rounding import floor


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Any = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``num`` evenly spaced numbers from start to stop, along a new ``axis``.

    Args:
        start: the first number, or an array of them.
        stop: the last one; without ``endpoint`` the one that would follow.
        num: how many numbers there are.
        endpoint: whether stop is the last one.
        retstep: whether to return the distance between neighbours as well.
        dtype: of the result; an integer dtype rounds down.
        axis: where the new dimension stands in the result.
        device: a device or a sharding: where the result lies; None for the default device.

    Returns:
        An array with ``num`` elements along ``axis``; with ``retstep`` also their distance.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.linspace(0, 1, 5))
    [0.   0.25 0.5  0.75 1.  ]
    """
    if device is None:
        return _linspace(start, stop, num, endpoint, retstep, dtype, axis)
    out, gap = _linspace(start, stop, num, endpoint, True, dtype, axis)
    out = on_device(out, device)
    return (out, gap) if retstep else out


@one_program
def _linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int,
    endpoint: bool,
    retstep: bool,
    dtype: DTypeLike | None,
    axis: int,
) -> Any:
    """The numbers, and, with ``retstep``, the distance between neighbours."""
    count = lengths.length(num)
    if count < 0:
        raise ValueError(f"linspace: num must not be negative, got {count}")
    first, last = arrays("linspace", start, stop, to=dtypes.to_inexact)
    kind = first.aval.dtype
    target = kind if dtype is None else dtypes.requested(dtype)
    parts = count - 1 if endpoint else count
    out = _interpolated(first, last, count, parts)
    if target in INTEGERS:
        out = _whole(out, first, last)
    at = ops.dimension("linspace", axis, out.ndim)
    out = convert(ops.move(out, 0, at), target)
    if not retstep:
        return out
    gap = ops.sub(last, first)
    return out, ops.div(gap, literal(gap, parts if parts else math.nan))


def _interpolated(first: Any, last: Any, count: int, parts: int) -> Any:
    """(1 - t) first + t last, for t = 0, 1/parts, 2/parts, ..."""
    kind, shape = first.aval.dtype, (count, *first.shape)
    first, last = (ops.broadcast_to(x, shape) for x in (first, last))
    if not lengths.symbolic((parts,)) and parts <= 0:
        return first
    real = dtypes.to_real(kind)
    t = ops.iota(dtype=real, shape=shape, dim=0)
    t = convert(over(t, lengths.larger(parts, 1)), kind)
    return ops.add(ops.mul(first, ops.sub(literal(t, 1), t)), ops.mul(last, t))


def _whole(x: Any, first: Any, last: Any) -> Any:
    """The integers at or below ``x``, that numbers between two ends were rounded to."""
    size = ops.broadcast_to(ops.max(ops.abs(first), ops.abs(last)), x.shape)
    near = ops.round(x, mode="even")
    slack = ops.mul(size, literal(size, 4 * float(dtypes.finfo(x.dtype).eps)))
    return ops.select(ops.le(ops.abs(ops.sub(x, near)), slack), near, floor(x))


@one_program
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """``num`` numbers whose logarithms are evenly spaced: base^start, ..., base^stop.

    Args:
        start: the logarithm of the first number.
        stop: the logarithm of the last one.
        num: how many numbers.
        endpoint: whether stop is the last number, and not the one that would follow.
        base: the base of the logarithms.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.
        axis: where the new dimension stands, if start and stop are arrays.

    Returns:
        An array with ``num`` elements along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.logspace(0, 2, 3, base=2.0))
    [1. 2. 4.]
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    out = power(base, exponents)
    return out if dtype is None else convert(out, dtypes.requested(dtype))


@one_program
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """``num`` numbers from start to stop, not zero, each a constant multiple of the last.

    Args:
        start: the first number, real or complex.
        stop: the last one, of the same sign.
        num: how many numbers.
        endpoint: whether stop is the last number, and not the one that would follow.
        dtype: the dtype of the result; None for that of the ends, and float32 of integers.
        axis: where the new dimension stands, if start and stop are arrays.

    Returns:
        An array with ``num`` elements along ``axis``.

    >>> print(jnp.geomspace(1, 16, 3).round(3))
    [ 1.  4. 16.]
    """
    first, last = arrays("geomspace", start, stop, to=dtypes.to_inexact)
    sign = ops.sign(first)
    low, high = (ops.log(ops.div(x, sign)) for x in (first, last))
    out = ops.exp(linspace(low, high, num, endpoint))
    out = ops.move(ops.mul(out, ops.broadcast_to(sign, out.shape)), 0, axis % out.ndim)
    return out if dtype is None else convert(out, dtypes.requested(dtype))


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """The coordinates of the points of a grid, from the coordinates along each axis.

    Args:
        xi: a vector for each axis.
        copy: has no meaning: arrays are immutable.
        sparse: whether to leave the dimensions in which a result is constant at length 1.
        indexing: "xy" lets the second dimension follow the first vector; "ij" does not.

    Returns:
        A tuple of arrays, one per argument: of one shape, or with ``sparse`` of shapes that
        broadcast.

    Raises:
        ValueError: an argument has 2 dimensions or more, or there is no such indexing.

    >>> x, y = jnp.meshgrid(jnp.arange(3), jnp.arange(2))
    >>> print(x)
    [[0 1 2]
     [0 1 2]]
    """
    vectors = [as_array("meshgrid", x) for x in xi]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    for x in vectors:
        if x.ndim > 1:
            raise ValueError(f"meshgrid: vectors are needed, got {x.aval}")
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = [1] * len(vectors)
    for d, x in zip(order, vectors, strict=True):
        shape[d] = x.size
    out: list[Any] = []
    for d, x in zip(order, vectors, strict=True):
        thin = ops.reshape(x, shape=tuple(n if i == d else 1 for i, n in enumerate(shape)))
        out.append(thin if sparse else ops.broadcast_to(thin, tuple(shape)))
    return tuple(out)


class _Grid:
    """Grids by slices: ``mgrid[0:3, 0:2]``; an imaginary step is a number of points."""

    def __init__(self, host: Any, doc: str) -> None:
        self._host = host
        self.__doc__ = doc

    def __getitem__(self, key: Any) -> Any:
        value = self._host[key]
        if isinstance(value, SEQUENCE):
            return tuple(from_host(x) for x in value)
        return from_host(value)


mgrid = _Grid(np.mgrid, "A full grid of coordinates, as one array, by slices.")


ogrid = _Grid(np.ogrid, "A grid of coordinates that broadcast, one array per axis, by slices.")


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """``function`` of the indices of an array of ``shape``, one array of them per dimension.

    Args:
        function: a function of as many arrays as there are dimensions, the coordinates.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the indices that ``function`` gets.
        kwargs: keyword arguments of the function.

    Returns:
        What ``function`` returns.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int))
    [[ 0  1  2]
     [10 11 12]]
    """
    return function(*indices(shape, dtype), **kwargs)
