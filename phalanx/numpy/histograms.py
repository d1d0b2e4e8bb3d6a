"""Histograms over one dimension and several, counts, and bins."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.errors import ShapeError
from phalanx.base.lengths import integer
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.layout import in_place, takes_out_sharding
from phalanx.numpy.extrema import max, min
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    convert,
    inexact,
    literal,
    promote_arrays,
    promote_inexact,
    value_of,
)
from phalanx.numpy.ranges import linspace
from phalanx.numpy.reductions import sum
from phalanx.numpy.sorting import searchsorted
from phalanx.numpy.statistics import flat


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points (x, y) lie in each cell of a grid, and the edges of the cells.

    Args:
        x: [n], real numbers.
        y: [n].
        bins: the number of bins, or their edges; or a pair of these, one for each dimension.
        range: a pair (low, high) or None for each dimension.
        weights: [n], what each point counts.
        density: whether to normalise so that the integral is 1.

    Returns:
        Counts, or densities [nx, ny], and the edges along x and along y.

    Raises:
        ShapeError: ``x`` and ``y`` are not vectors of one length.

    >>> counts, _, _ = jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), 2)
    >>> print(counts)
    [[1 0]
     [0 1]]
    """
    columns = promote_inexact("histogram2d", [x, y])
    if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
        raise ShapeError(
            f"histogram2d: two vectors of one length are needed, got {columns[0].aval} and "
            f"{columns[1].aval}"
        )
    points = jnp.stack(columns)
    try:
        several = len(bins) in (1, 2)
    except TypeError:
        several = True
    each = bins if several else [bins, bins]
    counts, edges = histogramdd(points.T, each, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points lie in each cell of a grid, and the edges of the cells.

    Args:
        sample: [n, d], points as rows; or [n], real numbers.
        bins: the number of bins; or that, or edges, for each dimension. The last bin is closed.
        range: a pair (low, high) or None for each dimension.
        weights: [n], what each point counts.
        density: whether to normalise so that the integral is 1.

    Returns:
        Counts, or densities, with a dimension for each coordinate, and a list of the edges along
        each.

    Raises:
        ShapeError: shapes do not go together.

    >>> points = jnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.9]])
    >>> print(jnp.histogramdd(points, 2)[0])
    [[1 0]
     [0 2]]
    """
    x = inexact("histogramdd", sample)
    x = x if x.ndim == 2 else jnp.atleast_2d(x).T
    if x.ndim != 2:
        raise ShapeError(f"histogramdd: points are rows, [n, d], got {x.aval}")
    d = x.shape[1]
    try:
        each = list(bins)
    except TypeError:  # one number
        each = [bins] * d
    ranges = [None] * d if range is None else list(range)
    if len(each) != d or len(ranges) != d:
        raise ShapeError(
            f"histogramdd: bins and ranges for {d} dimensions are needed, got {len(each)} and "
            f"{len(ranges)}"
        )
    columns = [x[:, i] for i in _numbers(d)]
    edges = [
        jnp.histogram_bin_edges(c, b, r) for c, b, r in zip(columns, each, ranges, strict=True)
    ]
    if weights is not None:
        weights = promote_inexact("histogramdd", [sample, weights])[1]
    return _counts_in_grid(x, *edges, weights=weights, density=bool(density)), edges


_numbers = range


@one_program
def _counts_in_grid(
    sample: ArrayLike, *edges: ArrayLike, weights: ArrayLike | None, density: bool
) -> Array:
    x, grid = as_array("histogramdd", sample), [as_array("histogramdd", e) for e in edges]
    shape = tuple(e.size - 1 for e in grid)
    place: Any = 0
    inside: Any = True
    for i, e in enumerate(grid):
        column, count = x[:, i], e.size - 1
        at = jnp.searchsorted(e, column, "right") - 1
        at = jnp.where(column == e[-1], count - 1, at)
        inside = inside & (at >= 0) & (at < count)
        place = place * count + at
    if weights is None:
        counted = jnp.ones(x.shape[0], dtypes.default_int())
    else:
        counted = as_array("histogramdd", weights)
    if counted.shape != x.shape[:1]:
        raise ShapeError(f"histogramdd: one weight for each row is needed, got {counted.aval}")
    size = math.prod(shape)
    place = jnp.where(inside, place, size)
    out = jnp.zeros(size, counted.dtype).at[place].add(counted, mode="drop").reshape(shape)
    if density:
        out = out / out.sum()
        for i, e in enumerate(grid):
            others = tuple(j for j in _numbers(x.shape[1]) if j != i)
            out = out / jnp.expand_dims(jnp.diff(e), others)
    return out


@one_program
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the interval between ``bins``, in- or decreasing, in which each x lies.

    ``right`` says that an interval includes its right edge instead of its left one.

    Args:
        x: real numbers, as an array, or a number.
        bins: the edges, in ascending or descending order.
        right: whether an interval includes its right edge, and not its left one.
        method: how to search, as in ``searchsorted``.

    Returns:
        Of the shape of ``x``; int32, or int64 with ``enable_x64``.

    Raises:
        ValueError: ``bins`` is no vector.

    >>> print(jnp.digitize(jnp.array([0.5, 1.0, 9.0]), jnp.array([0.0, 1.0, 2.0])))
    [1 2 3]
    """
    edges, values = as_array("digitize", bins), as_array("digitize", x)
    if edges.ndim != 1:
        raise ValueError(f"digitize: a vector of bins is needed, got {edges.aval}")
    n = edges.size
    if not n:
        return ops.full(values.shape, 0, dtypes.default_int())
    ends = (ops.slice_dim(edges, i, i + 1, 0) for i in (0, n - 1))
    increasing = ops.reshape(ops.le(*ends), shape=())
    turned = ops.reverse(edges, dims=(0,))
    rising = ops.select(ops.broadcast_to(increasing, edges.shape), edges, turned)
    below = searchsorted(rising, values, "left" if right else "right")
    above = ops.sub(literal(below, n), below)
    return ops.select(ops.broadcast_to(increasing, values.shape), below, above)


@takes_out_sharding
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each of 0, 1, 2, ... occurs in ``x``, or the sum of the weights there.

    Args:
        x: integers that are not negative; negative ones count as 0.
        weights: a weight for each.
        minlength: the least length of the result.
        length: the length of the result; without it the elements must be known.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        A vector: int32, or of the dtype of the weights; of length ``length``, or of the least that
        holds all.

    Raises:
        TypeError: ``x`` has other elements than integers.
        ValueError: ``x`` is no vector.

    >>> print(jnp.bincount(jnp.array([0, 1, 1, 3])))
    [1 2 0 1]
    """
    index = as_array("bincount", x)
    if not dtypes.is_integer(index.aval.dtype) and index.aval.dtype != np.bool_:
        raise TypeError(f"bincount: integers are needed, got {index.aval}")
    if index.ndim != 1:
        raise ValueError(f"bincount: a vector is needed, got {index.aval}")
    if length is None:
        known = value_of("bincount", index, "give length=")
        length = builtins.max(int(known.max()) + 1 if known.size else 0, minlength)
    count: int = integer("bincount", "length", length)
    if index.aval.dtype == np.bool_:
        index = convert(index, dtypes.default_int())
    if count < dtypes.iinfo(index.aval.dtype).max:  # what is beyond must not wrap around
        index = ops.min(index, literal(index, count))
    index = convert(index, dtypes.default_int())
    index = ops.max(index, literal(index, 0))
    if weights is None:
        amounts = ops.full(index.shape, 1, dtypes.default_int())
    else:
        amounts = as_array("bincount", weights)
    return ops.scatter_add(
        ops.full((count,), 0, amounts.aval.dtype),
        ops.reshape(index, shape=(*index.shape, 1)),
        convert(amounts, amounts.aval.dtype),
        numbers=ops.ScatterDimensionNumbers((), (0,), (0,)),
        mode="fill",
    )


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of ``bins`` equal intervals from the smallest to the largest element.

    ``bins`` may be the edges themselves; ``range`` replaces smallest and largest.

    Args:
        a: an array, or a number.
        bins: how many intervals, or their edges.
        range: the lower and the upper end; None for those of the data.
        weights: has no meaning: the edges are the same.

    Returns:
        Numbers [bins + 1] of the dtype of ``a``; integers give float32.

    Raises:
        TypeError: the number of ``bins`` is no integer.
        ValueError: ``bins`` is the name of a rule, or less than 1.

    >>> print(jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), 2))
    [0. 2. 4.]
    """
    if isinstance(bins, str):
        raise ValueError(f"histogram_bin_edges: a number of bins or edges are needed, got {bins!r}")
    edges = as_array("histogram_bin_edges", bins)
    x = inexact("histogram_bin_edges", a)
    if edges.ndim:
        return convert(edges, lattice.promote((edges.aval.dtype, False), (x.aval.dtype, False))[0])
    start, stop = (None, None) if range is None else range
    count = integer("histogram_bin_edges", "bins", bins)
    if count < 1:
        raise ValueError(f"histogram_bin_edges: bins must be 1 or more, got {count}")
    return _equal_bins(x, start, stop, count)


@one_program
def _equal_bins(a: ArrayLike, start: ArrayLike | None, stop: ArrayLike | None, count: int) -> Array:
    """The edges of ``count`` equal intervals; of one number, those around it."""
    x = as_array("histogram", a)
    ends: list[Any] = [start, stop]
    if start is None:
        ends = [min(x), max(x)] if x.size else [0.0, 1.0]
    low, high = promote_arrays("histogram", ends, x.aval.dtype)
    same = ops.eq(low, high)
    half = literal(low, 0.5)
    low = ops.select(same, ops.sub(low, half), low)
    high = ops.select(same, ops.add(high, half), high)
    return linspace(low, high, count + 1)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """How many elements lie in each bin, and the edges of the bins; the last one is closed.

    Args:
        a: the elements, real numbers, flattened.
        bins: the number of bins, or their edges.
        range: from where to where bins reach; by default over all elements.
        weights: what each element counts.
        density: whether to normalise so that the integral is 1.
        out_sharding: how the counts are to lie over devices.

    Returns:
        Counts [bins] in the dtype of the edges, or sums of weights in the floating-point or complex
        dtype to which ``a`` and ``weights`` promote, or densities; and the edges [bins + 1].

    Raises:
        TypeError: ``a`` is complex.

    >>> print(jnp.histogram(jnp.array([0.0, 1.0, 1.5, 4.0]), 2)[0])
    [3. 1.]
    """
    x = inexact("histogram", a)
    edges = histogram_bin_edges(x, bins, range)
    if weights is not None:
        weights = promote_inexact("histogram", [a, weights])[1]
    arguments = x, edges, weights, bool(density)
    if out_sharding is None:
        return _counts(*arguments), edges
    return in_place(out_sharding, _counts, arguments), edges


@one_program
def _counts(a: ArrayLike, bins: ArrayLike, weights: ArrayLike | None, density: bool) -> Array:
    x, edges = promote_arrays("histogram", [a, bins])
    x = flat(x)
    count = edges.shape[0] - 1
    w = ops.full(x.shape, 1, x.aval.dtype)
    if weights is not None:
        w = flat(as_array("histogram", weights))
    place = searchsorted(edges, x, "right")
    place = ops.sub(place, literal(place, 1))
    on_last = ops.eq(x, ops.broadcast_to(ops.slice_dim(edges, count, count + 1, 0), x.shape))
    place = ops.select(on_last, ops.full(x.shape, count - 1, place.aval.dtype), place)
    outside = ops.lt(place, literal(place, 0))
    place = ops.select(outside, literal(place, count), place)
    counts = bincount(place, w, length=count)
    if density:
        widths = ops.sub(ops.slice_dim(edges, 1, count + 1, 0), ops.slice_dim(edges, 0, count, 0))
        total = ops.broadcast_to(sum(counts), counts.shape)
        counts = ops.div(ops.div(counts, convert(widths, counts.aval.dtype)), total)
    return counts
