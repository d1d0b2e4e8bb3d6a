"""Statistics of samples: ranks, the most common value, the error of the mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.creation import full, ones_like
from phalanx.numpy.indexing import take_along_axis
from phalanx.numpy.joining import concatenate
from phalanx.numpy.manipulation import atleast_1d, ravel, squeeze
from phalanx.numpy.promotion import ArrayLike, as_array, inexact, number_array
from phalanx.numpy.searching import where
from phalanx.numpy.sorting import argsort, sort
from phalanx.numpy.statistics import nanstd, std
from phalanx.primitives.shape import dimension, iota, slice_dim


class ModeResult(NamedTuple):
    """The most common values, and how often they occur."""

    mode: Array
    count: Array  # pyright: ignore[reportIncompatibleMethodOverride]: SciPy's name, a tuple's method


# ---- equal elements beside each other -------------------------------------------------------


def _omits(who: str, nan_policy: str) -> bool:
    """Whether elements that are NaN are left out.

    Raises:
        NotImplementedError: they are to raise an error.
        ValueError: there is no such policy.
    """
    if nan_policy == "raise":
        raise NotImplementedError(
            f"{who}: whether there is a NaN is not known while tracing; use nan_policy='propagate'"
        )
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"{who}: nan_policy must be 'propagate' or 'omit', got {nan_policy!r}")
    return nan_policy == "omit"


def _line(who: str, a: Any, axis: int | None) -> tuple[Array, int]:
    """``a`` and the dimension that is meant; ``a`` as a line where that is None."""
    x = number_array(who, a)
    if axis is None:
        return ravel(x), 0
    if not x.ndim:
        raise ValueError(f"{who}: there is no axis {axis} in {x.aval}; use axis=None")
    return x, dimension(who, axis, x.ndim)


def _starts(ordered: Array, dim: int) -> Array:
    """Whether each element differs from that before it; NaN is equal to NaN."""
    before = slice_dim(ordered, 0, ordered.shape[dim] - 1, dim)
    after = slice_dim(ordered, 1, ordered.shape[dim], dim)
    differ = (before != after) & ~((before != before) & (after != after))
    first = ones_like(slice_dim(ordered, 0, 1, dim), dtype=bool)
    return concatenate([first, differ], dim)


# ---- statistics -----------------------------------------------------------------------------


@one_program
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Ranks of the elements by size, from 1 up; ties share a rank as ``method`` says.

    Args:
        a: an array.
        method: the rank of elements that are equal: "average", "min" or "max" of the ranks that
            they take up together; "dense", like "min" without gaps after ties; or "ordinal",
            different ranks in the order of the array.
        axis: the axis along which elements are ranked; None to rank all elements of the flattened
            array.
        nan_policy: "propagate": all ranks are NaN where one element is; "omit": only that of the
            NaN itself. SciPy's "raise" is refused, since values are not known while tracing.

    Returns:
        float32, of the shape of ``a``.

    Raises:
        ValueError: ``method``, ``nan_policy`` or ``axis`` is not valid.
        NotImplementedError: ``nan_policy`` is "raise".

    >>> print(scipy.stats.rankdata(jnp.array([0, 2, 3, 2])))
    [1.  2.5 4.  2.5]
    >>> print(scipy.stats.rankdata(jnp.array([0, 2, 3, 2]), method="dense"))
    [1. 2. 3. 2.]
    """
    if method not in _RANKS:
        raise ValueError(f"rankdata: method must be one of {list(_RANKS)}, got {method!r}")
    omits = _omits("rankdata", nan_policy)
    x, dim = _line("rankdata", a, axis)
    dtype = dtypes.default_float()
    if x.size == 0:
        return ops.full(x.shape, 0, dtype)
    order = argsort(x, dim)
    starts = _starts(take_along_axis(x, order, dim), dim)
    ranks = take_along_axis(_RANKS[method](starts, dim), argsort(order, dim), dim)
    ranks = ops.convert(ranks, dtype=dtype, weak=False)
    unknown = ops.ne(x, x)
    return where(unknown if omits else unknown.any(dim, keepdims=True), math.nan, ranks)


def _ordinal(starts: Array, dim: int) -> Array:
    places = iota(dtype=dtypes.default_int(), shape=starts.shape, dim=dim)
    return places + 1


def _least(starts: Array, dim: int) -> Array:
    return ops.cummax(where(starts, _ordinal(starts, dim), 0), dim=dim, reverse=False)


def _greatest(starts: Array, dim: int) -> Array:
    count = starts.shape[dim]
    last = ones_like(slice_dim(starts, 0, 1, dim))
    ends = concatenate([slice_dim(starts, 1, count, dim), last], dim)
    return ops.cummin(where(ends, _ordinal(starts, dim), count), dim=dim, reverse=True)


_RANKS: dict[str, Callable[[Array, int], Array]] = {
    "average": lambda starts, dim: (_least(starts, dim) + _greatest(starts, dim)) / 2,
    "min": _least,
    "max": _greatest,
    "dense": lambda starts, dim: starts.cumsum(dim),
    "ordinal": _ordinal,
}


@one_program
def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Most common value along an axis, and how often it occurs; of several the smallest.

    Args:
        a: an array.
        axis: the axis along which values are counted; None to count in the whole array.
        nan_policy: "propagate" counts NaN as a value, "omit" does not count it; SciPy's "raise" is
            refused, since values are not known while tracing.
        keepdims: whether the axis stays, with length 1.

    Returns:
        A named tuple: ``mode``, the values, and ``count``, how often they occur; of the shape of
        ``a`` without ``axis``.

    Raises:
        ValueError: ``nan_policy`` or ``axis`` is not valid.
        NotImplementedError: ``nan_policy`` is "raise".

    >>> found = scipy.stats.mode(jnp.array([[2, 4, 1, 1, 2], [3, 3, 3, 0, 1]]), axis=1)
    >>> print(found.mode, found.count)
    [1 3] [2 3]
    """
    omits = _omits("mode", nan_policy)
    a = atleast_1d(as_array("mode", a))
    x, dim = _line("mode", a, axis)
    if x.shape[dim] == 0:
        shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
        dtype = dtypes.default_float()
        nothing = full(shape, math.nan, dtype), full(shape, 0, dtype)
        return _shown(nothing, number_array("mode", a), axis, dim, keepdims)
    ordered = sort(x, dim)
    places = _ordinal(ordered, dim)
    counts = places - _least(_starts(ordered, dim), dim) + 1
    if omits:
        counts = where(ordered != ordered, 0, counts)
    best = counts.argmax(dim, keepdims=True)
    found = take_along_axis(ordered, best, dim), take_along_axis(counts, best, dim)
    return _shown(found, number_array("mode", a), axis, dim, keepdims)


def _shown(
    found: tuple[Array, Array], a: Array, axis: int | None, dim: int, keepdims: bool
) -> ModeResult:
    if keepdims:
        shape = (1,) * a.ndim if axis is None else None
        return ModeResult(*(x if shape is None else x.reshape(shape) for x in found))
    return ModeResult(*(squeeze(x, dim) for x in found))


@one_program
def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Standard error of the mean: the standard deviation of a sample over the root of its size.

    Args:
        a: an array.
        axis: the axis along which samples lie; None for the flattened array.
        ddof: the standard deviation divides by n - ``ddof``; 1 for the unbiased variance.
        nan_policy: "propagate": NaN where an element is NaN; "omit" leaves such elements out.
            SciPy's "raise" is refused, since values are not known while tracing.
        keepdims: whether the axis stays, with length 1.

    Returns:
        Real floating-point numbers of the shape of ``a`` without ``axis``.

    Raises:
        ValueError: ``nan_policy`` or ``axis`` is not valid.
        NotImplementedError: ``nan_policy`` is "raise".

    >>> print(scipy.stats.sem(jnp.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]]), axis=1).round(4))
    [0.5774 1.    ]
    """
    omits = _omits("sem", nan_policy)
    x = inexact("sem", a)
    if axis is not None:
        axis = dimension("sem", axis, x.ndim)
    if not omits:
        count = x.size if axis is None else x.shape[axis]
        return std(x, axis, ddof=ddof, keepdims=keepdims) * (count**-0.5 if count else math.nan)
    counts = ops.eq(x, x).sum(axis, keepdims=keepdims)
    deviation = nanstd(x, axis, ddof=ddof, keepdims=keepdims)
    return deviation / ops.sqrt(ops.convert(counts, dtype=typeof(deviation).dtype, weak=False))
