"""Arrays put together: concatenate, stack, block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base.errors import ShapeError
from phalanx.base.kinds import LIST, is_iterable
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d
from phalanx.numpy.promotion import ArrayLike, DTypeLike, as_array, dim, promote_arrays


def _several(who: str, arrays: Any) -> list[Any]:
    """The arrays in a sequence, or along the first dimension of an array."""
    if isinstance(arrays, (Array, np.ndarray)):
        x = as_array(who, arrays)
        if not x.ndim:
            raise ValueError(f"{who}: a sequence of arrays is needed, got one array {x.aval}")
        if x.ndim == 1 and who == "concatenate":
            raise ValueError(
                f"{who}: a sequence of arrays is needed, got one array {x.aval}; write "
                f"{who}([x, y])"
            )
        parts = ops.split(x, (1,) * x.shape[0], 0) if x.shape[0] else ()
        every: list[Any] = [ops.squeeze(v, (0,)) for v in parts]
    elif is_iterable(arrays):
        every = list(arrays)
    else:
        raise TypeError(f"{who}: a sequence of arrays is needed, got {arrays!r}")
    if not every:
        raise ValueError(f"{who}: at least one array is needed, got an empty sequence")
    return every


@one_program
def concatenate(
    arrays: Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """The arrays one after the other along ``axis``; None flattens them first.

    Args:
        arrays: a sequence of arrays that differ along the axis at most.
        axis: the axis along which they are joined; None flattens them first.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    Raises:
        ValueError: they have different lengths in another dimension.

    >>> print(jnp.concatenate([jnp.arange(2), jnp.zeros(2, dtype=int)]))
    [0 1 0 0]
    """
    xs = promote_arrays("concatenate", _several("concatenate", arrays), dtype)
    if axis is None:
        xs, axis = [ops.reshape(x, shape=(x.size,)) for x in xs], 0
    return _joined("concatenate", xs, axis)


concat = concatenate


def _joined(who: str, xs: list[Any], axis: int) -> Any:
    if not xs[0].ndim:
        raise ValueError(f"{who}: arrays without dimensions cannot be joined; see jnp.stack")
    d = dim(who, axis, xs[0])
    first = xs[0].shape
    for x in xs[1:]:
        if x.ndim != len(first) or any(
            n != m for i, (n, m) in enumerate(zip(x.shape, first, strict=True)) if i != d
        ):
            raise ShapeError(
                f"{who}: arrays must have equal shapes but along axis {axis}, got {xs[0].aval} "
                f"and {x.aval}"
            )
    return ops.concatenate(*xs, dim=d) if len(xs) > 1 else xs[0]


@one_program
def stack(
    arrays: Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """The arrays, of one shape, along a new dimension ``axis``.

    Args:
        arrays: a sequence of arrays.
        axis: where the new dimension stands in the result.
        out: must be None: arrays are immutable, and results are returned.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    Raises:
        AxisError: there is no dimension ``axis``.
        ShapeError: the arrays have different shapes.

    >>> print(jnp.stack([jnp.arange(2), jnp.arange(2)], axis=1))
    [[0 0]
     [1 1]]
    """
    xs = promote_arrays("stack", _several("stack", arrays), dtype)
    if any(x.shape != xs[0].shape for x in xs):
        shapes = ", ".join(str(x.aval) for x in xs)
        raise ShapeError(f"stack: all arrays must have one shape, got {shapes}")
    return ops.stack(xs, ops.dimension("stack", axis, xs[0].ndim + 1))


@one_program
def vstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays one below the other: along the first of at least two dimensions.

    Args:
        tup: a sequence of arrays.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    >>> print(jnp.vstack([jnp.arange(2), jnp.arange(2)]))
    [[0 1]
     [0 1]]
    """
    return concatenate([atleast_2d(x) for x in _several("vstack", tup)], 0, dtype)


@one_program
def hstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays side by side: along the second dimension, of vectors along the first.

    Args:
        tup: a sequence of arrays.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    >>> print(jnp.hstack([jnp.arange(2), jnp.arange(2)]))
    [0 1 0 1]
    """
    xs = [atleast_1d(x) for x in _several("hstack", tup)]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1, dtype)


@one_program
def dstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """The arrays one behind the other: along the third of at least three dimensions.

    Args:
        tup: a sequence of arrays.
        dtype: the dtype of the result; None for the one to which all are promoted.

    Returns:
        An array of the dtype to which all are promoted, or of ``dtype``.

    >>> jnp.dstack([jnp.zeros((2, 2)), jnp.ones((2, 2))]).shape
    (2, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in _several("dstack", tup)], 2, dtype)


@one_program
def column_stack(tup: Sequence[ArrayLike]) -> Array:
    """Vectors as the columns of a matrix, beside matrices.

    Args:
        tup: a sequence of arrays.

    Returns:
        A matrix.

    >>> print(jnp.column_stack([jnp.arange(2), jnp.zeros(2, dtype=int)]))
    [[0 0]
     [1 0]]
    """
    xs = [as_array("column_stack", x) for x in _several("column_stack", tup)]
    return concatenate([x if x.ndim > 1 else ops.reshape(x, shape=(x.size, 1)) for x in xs], 1)


def block(arrays: Any) -> Array:
    """One array of nested lists of blocks: the innermost lists run along the last dimension.

    Args:
        arrays: an array, or nested lists of them: the innermost are joined along the last axis.

    Returns:
        An array of the dtype to which the blocks are promoted.

    >>> print(jnp.block([[jnp.ones((1, 1)), jnp.zeros((1, 1))]]))
    [[1. 0.]]
    """
    depth = _depth(arrays)
    return _block(arrays, depth, 1)


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays), default=0) if isinstance(arrays, LIST) else 0


def _block(arrays: Any, depth: int, level: int) -> Any:
    if not isinstance(arrays, LIST):
        x = as_array("block", arrays)
        return ops.reshape(x, shape=(1,) * (depth - x.ndim) + x.shape) if x.ndim < depth else x
    parts = [_block(a, depth, level + 1) for a in arrays]
    return concatenate(parts, level - 1 - depth)
