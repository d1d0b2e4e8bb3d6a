"""Images of any number of dimensions, sampled between their elements."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array

__all__ = ["map_coordinates"]


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """``input`` at places between its elements.

    Args:
        input: an array.
        coordinates: an array of positions for each of its dimensions; they have one shape.
        order: 0 for the nearest element, of two the one farther from position 0; 1 for lines
            between elements.
        mode: what lies outside: "constant" (``cval``), "nearest" (the element at the edge), "wrap"
            (the array again), "mirror" (its reflection, the edge once) or "reflect" (the edge
            twice).
        cval: the value outside, with "constant".

    Returns:
        An array of the shape of the positions, in the dtype of ``input``; sums of integers are
        rounded.

    Raises:
        ValueError: there is not one array of positions for each dimension, or the order or the
            mode is another.

    >>> from phalanx.scipy.ndimage import map_coordinates
    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> print(map_coordinates(x, [jnp.array([0.5, 1.0]), jnp.array([0.0, 1.5])], order=1))
    [1.5 4.5]
    """
    x = as_array("map_coordinates", input)
    places = [as_array("map_coordinates", c) for c in coordinates]
    if len(places) != x.ndim:
        raise ShapeError(
            f"map_coordinates: an array of positions for each dimension of {x.aval} is needed, got "
            f"{len(places)}"
        )
    if mode not in _INDICES:
        raise ArgumentError(f"map_coordinates: mode must be one of {[*_INDICES]}, got {mode!r}")
    if order not in (0, 1):
        raise ArgumentError(f"map_coordinates: order must be 0 or 1, got {order!r}")
    if not x.size:
        raise ShapeError(f"map_coordinates: {x.aval} has no elements")
    outside = jnp.asarray(cval, x.dtype)
    corners = [
        _corners(position, order, _INDICES[mode], size, mode == "constant")
        for position, size in zip(places, x.shape, strict=True)
    ]
    total: Any = 0
    for corner in itertools.product(*corners):
        value = x[tuple(index for index, _, _ in corner)]
        inside: Any = True
        for _, _, valid in corner:
            inside = inside & valid
        if inside is not True:
            value = jnp.where(inside, value, outside)
        for _, weight, _ in corner:
            value = value * weight
        total = total + value
    if dtypes.is_integer(x.dtype):
        total = jnp.round(total)
    return jnp.asarray(total).astype(x.dtype)


def _corners(
    position: Any, order: int, index: Callable[[Any, int], Any], size: int, bounded: bool
) -> list[tuple[Any, Any, Any]]:
    """The elements beside a position: the index of each, its weight, and whether it is there."""
    integer = np.dtype("int32")
    if order == 0:
        nearest = _rounded(position).astype(integer)
        found = [(nearest, jnp.ones((), dtypes.default_float()))]
    else:
        below = jnp.floor(position)
        above = position - below
        lower = below.astype(integer)
        found = [(lower, 1 - above), (lower + 1, above)]
    return [
        (index(i, size), weight, (i >= 0) & (i < size) if bounded else True) for i, weight in found
    ]


def _rounded(position: Any) -> Any:
    """To the nearest whole number, halves away from 0: half outside of an array is outside."""
    far = jnp.abs(position)
    below = jnp.floor(far)
    return jnp.sign(position) * (below + (far - below >= 0.5))


def _mirrored(i: Any, size: int) -> Any:
    span = max(size - 1, 1)
    return jnp.abs((i + span) % (2 * span) - span) if size > 1 else jnp.zeros_like(i)


def _reflected(i: Any, size: int) -> Any:
    return jnp.minimum(i % (2 * size), 2 * size - 1 - i % (2 * size))


_INDICES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, size: jnp.clip(i, 0, size - 1),
    "nearest": lambda i, size: jnp.clip(i, 0, size - 1),
    "wrap": lambda i, size: i % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}

bound(sys.modules[__name__])
