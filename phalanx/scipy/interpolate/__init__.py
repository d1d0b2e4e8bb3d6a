"""Values between the points of a grid."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from typing import Any

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, inexact, promote_arrays

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function of points in space, that takes given values at the points of a grid.

    Args:
        points: the coordinates of the grid along each of n dimensions, vectors, ascending.
        values: [k1, ..., kn, ...], the values at the points of the grid.
        method: "linear", or "nearest"; halfway between two points that is the first.
        bounds_error: must be false: points are not known while tracing.
        fill_value: the value outside of the grid; None goes on with the method.

    Raises:
        ValueError: an option is none of these, or shapes do not go together.

    >>> import phalanx.numpy as jnp
    >>> from phalanx.scipy.interpolate import RegularGridInterpolator
    >>> grid = jnp.array([1.0, 2.0, 4.0]), jnp.array([0.0, 1.0])
    >>> f = RegularGridInterpolator(grid, jnp.array([[1.0, 2.0], [3.0, 4.0], [7.0, 8.0]]))
    >>> print(f(jnp.array([[3.0, 0.5], [0.0, 0.0]])))
    [5.5 nan]
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: float | None = math.nan,
    ) -> None:
        self.method, self.fill_value = _checked(method), fill_value
        if bounds_error:
            raise ArgumentError(
                "RegularGridInterpolator: bounds_error must be false: which points come is not "
                "known while tracing; see fill_value"
            )
        self.grid = tuple(inexact("RegularGridInterpolator", jnp.asarray(p)) for p in points)
        self.values = inexact("RegularGridInterpolator", jnp.asarray(values))
        sizes = tuple(p.shape for p in self.grid)
        if sizes != tuple((n,) for n in self.values.shape[: len(sizes)]) or (0,) in sizes:
            raise ShapeError(
                "RegularGridInterpolator: a vector of coordinates for each dimension of "
                f"{self.values.aval} is needed, got {', '.join(str(p.aval) for p in self.grid)}"
            )

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at ``xi``, [..., n], or a tuple of n arrays; a vector becomes [k, n]."""
        method = self.method if method is None else _checked(method)
        if isinstance(xi, tuple):
            columns = jnp.broadcast_arrays(*promote_arrays("RegularGridInterpolator", xi))
        else:
            columns = self._columns(inexact("RegularGridInterpolator", jnp.asarray(xi)))
        if len(columns) != len(self.grid):
            raise ShapeError(
                f"RegularGridInterpolator: points of {len(self.grid)} coordinates are needed, got "
                f"{len(columns)}"
            )
        corners = [
            _corners(p, x, method == "nearest") for p, x in zip(self.grid, columns, strict=True)
        ]
        rest = (1,) * (self.values.ndim - len(self.grid))
        total: Any = 0
        for corner in itertools.product(*corners):
            weight = math.prod((w for _, w in corner), start=1)
            value = self.values[tuple(at for at, _ in corner)]
            total = total + value * jnp.reshape(weight, (*jnp.shape(weight), *rest))
        if self.fill_value is None:
            return total
        inside: Any = True
        for p, x in zip(self.grid, columns, strict=True):
            inside = inside & (x >= p[0]) & (x <= p[-1])
        fill = jnp.asarray(self.fill_value, total.dtype)
        return jnp.where(jnp.reshape(inside, (*inside.shape, *rest)), total, fill)

    def _columns(self, x: Any) -> Sequence[Any]:
        n = len(self.grid)
        if x.ndim == 1 and not x.size % n:
            x = x.reshape(-1, n)
        if x.shape[-1:] != (n,):
            raise ShapeError(f"RegularGridInterpolator: points [..., {n}] are needed, got {x.aval}")
        return [x[..., i] for i in range(n)]


def _checked(method: Any) -> Any:
    if method not in _METHODS:
        raise ArgumentError(
            f"RegularGridInterpolator: method must be one of {_METHODS}, got {method!r}"
        )
    return method


def _corners(points: Any, x: Any, nearest: bool) -> list[tuple[Any, Any]]:
    """The points of the grid beside ``x``: where they stand, and what they weigh."""
    n = points.shape[0]
    if n == 1:
        return [(jnp.zeros(x.shape, dtypes.default_int()), jnp.ones(x.shape, x.dtype))]
    below = jnp.clip(jnp.searchsorted(points, x, "right") - 1, 0, n - 2)
    left, right = points[below], points[below + 1]
    share = (x - left) / (right - left)
    if nearest:
        share = jnp.where(share > 0.5, 1.0, 0.0).astype(share.dtype)
        return [(below + share.astype(below.dtype), jnp.ones_like(share))]
    return [(below, 1 - share), (below + 1, share)]


bound(sys.modules[__name__], RegularGridInterpolator)
