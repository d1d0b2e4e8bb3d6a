"""Numbers evenly spaced, or so that their logarithms are; and grids."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice, lengths
from phalanx.base.dtypes import INTEGERS
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import Length
from phalanx.base.numpy_kinds import GENERIC, NDARRAY
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.arithmetic import power
from phalanx.numpy.creation import created_on, on_device
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    arrays,
    as_array,
    convert,
    from_host,
    literal,
    over,
)
from phalanx.numpy.rounding import floor


@takes_out_sharding
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Evenly spaced numbers: start, start + step, ... up to, without, stop; or 0, 1, ... below
    the only argument.

    Args:
        start: the first number; if it is the only one given, the end, and the first is 0.
        stop: the end, which is not in the result.
        step: the difference of neighbours; default 1.
        dtype: the dtype of the result; None for that of the numbers.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        A vector of length ceil((stop - start) / step).

    Raises:
        ConcretizationTypeError: an argument is traced; the length must be known.

    >>> print(jnp.arange(4), jnp.arange(2, 10, 3))
    [0 1 2 3] [2 5 8]
    """
    bounds = [x for x in (start, stop, step) if x is not None]
    if stop is None:
        start, stop = 0, start
    first, last, by = map(_number, (start, stop, 1 if step is None else step))
    if by == 0:
        raise ValueError("arange: step must not be 0")
    kind = lattice.result_type(*bounds) if dtype is None else dtypes.requested(dtype)
    if all(isinstance(x, (int, Length)) for x in (first, last, by)):
        count = lengths.count(first, last, by)
    else:
        count = max(0, math.ceil((last - first) / by))
    return created_on(device, _range, first, by, count, kind)


def _number(x: Any) -> Any:
    if isinstance(x, (Array, NDARRAY, GENERIC)):
        x = x.item()
    if isinstance(x, Length):
        return x
    if not isinstance(x, (bool, int, float)):
        raise TypeError(f"arange: start, stop and step must be real numbers, got {x!r}")
    return int(x) if isinstance(x, (bool, int)) else x


_EXACT = 2**24  # up to here float32 represents every integer


def _range(first: Any, by: Any, count: int, dtype: np.dtype) -> Any:
    if lengths.symbolic((first, by, count)):
        return _counted(first, by, count, dtype)
    integral = first == int(first) and by == int(by)
    largest = max(abs(first), abs(first + by * count))
    exact = dtype in INTEGERS or (dtype.name in ("float32", "float64") and largest < _EXACT)
    if not (integral and exact):
        return from_host(np.asarray(first + by * np.arange(count)).astype(dtype))
    return _counted(int(first), int(by), count, dtype)


def _counted(first: Any, by: Any, count: Any, dtype: np.dtype) -> Any:
    """``count`` numbers in steps of ``by``."""
    out = ops.iota(dtype=dtype, shape=(count,), dim=0)
    if by != 1:
        out = ops.mul(out, literal(out, by))
    return out if first == 0 else ops.add(out, literal(out, first))


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
