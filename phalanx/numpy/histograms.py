"""Histograms over several dimensions."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, inexact, promote_inexact

__all__ = ["histogram2d", "histogramdd"]


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
    each = list(bins) if hasattr(bins, "__len__") else [bins] * d
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
    return _counts(x, *edges, weights=weights, density=bool(density)), edges


_numbers = range


@one_program
def _counts(
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


bound(sys.modules[__name__])
