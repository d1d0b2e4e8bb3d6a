"""Moving, repeating, joining and parting the elements of arrays."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Sequence
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import common_shape
from phalanx.core.types import Array, ArrayLike, ShapeLike, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.operands import accept, integers, is_python, lengths_of, one
from phalanx.lax.slicing import index_in_dim
from phalanx.primitives.shape import dimension, dimensions, reorder

# ---- repeating ------------------------------------------------------------------------------


@takes_out_sharding
def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The operand repeated over new leading dimensions of lengths ``sizes``.

    Args:
        operand: an array.
        sizes: the lengths of the new dimensions in front.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of the operand.

    >>> lax.broadcast(np.int32([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x = accept("broadcast", operand)
    lead = integers("broadcast", "sizes", sizes)
    shape = typeof(x).shape
    dims = tuple(range(len(lead), len(lead) + len(shape)))
    return ops.broadcast(x, shape=(*lead, *shape), dims=dims)


@takes_out_sharding
def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """The operand repeated to ``shape``; its dimension i becomes ``broadcast_dimensions[i]``.

    Args:
        operand: an array.
        shape: the shape of the result: a tuple of integers, or an integer.
        broadcast_dimensions: which dimension of the result each one of the operand becomes.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ValueError: the shapes do not fit, or a length in ``shape`` is negative.

    >>> lax.broadcast_in_dim(np.int32([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    x = accept("broadcast_in_dim", operand)
    lengths = integers("broadcast_in_dim", "shape", shape)
    dims = integers("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    return ops.broadcast(x, shape=lengths, dims=dims)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes have after broadcasting them as NumPy does.

    Args:
        shapes: tuples of integers.

    Returns:
        A tuple of integers.

    Raises:
        ValueError: they do not broadcast.

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return common_shape("lax.broadcast_shapes", *(tuple(s) for s in shapes))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """x with leading dimensions of length 1, so that it has ``rank`` dimensions.

    Args:
        x: an array, or a number.
        rank: how many dimensions the result has.

    Returns:
        An array of the dtype of ``x``.

    >>> lax.broadcast_to_rank(np.int32([1, 2]), 2)
    Array([[1, 2]], dtype=int32)
    """
    missing = rank - typeof(accept("broadcast_to_rank", x)).ndim
    return expand_dims(x, range(builtins.max(missing, 0)))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """The operand repeated ``reps[i]`` times along dimension i.

    Args:
        operand: an array.
        reps: how often, per dimension.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ValueError: ``reps`` has not one entry per dimension.

    >>> lax.tile(np.int32([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    x = accept("tile", operand)
    shape, times = typeof(x).shape, integers("tile", "reps", reps)
    if len(times) != len(shape):
        raise ValueError(f"lax.tile: reps needs one entry per dimension of {typeof(x)}, got {reps}")
    interleaved = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    dims = tuple(range(1, 2 * len(shape), 2))
    repeated = ops.broadcast(x, shape=interleaved, dims=dims)
    out = tuple(t * n for t, n in zip(times, shape, strict=True))
    return ops.reshape(repeated, shape=out)


# ---- other shapes ---------------------------------------------------------------------------


@takes_out_sharding
def reshape(
    operand: ArrayLike,
    new_sizes: ShapeLike,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The elements in row-major order, after transposing to ``dimensions``, in another shape.

    Args:
        operand: an array.
        new_sizes: the shape of the result: a tuple of integers, or an integer.
        dimensions: the order in which dimensions of the operand are read; None: as they are.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ShapeError: the numbers of elements differ.

    >>> lax.reshape(np.int32([[1, 2], [3, 4]]), (4,), (1, 0))
    Array([1, 3, 2, 4], dtype=int32)
    """
    x = accept("reshape", operand)
    if dimensions is not None:
        x = reorder(x, integers("reshape", "dimensions", dimensions))
    return ops.reshape(x, shape=lengths_of("reshape", "new_sizes", new_sizes))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Dimensions ``start_dimension`` up to, without, ``stop_dimension`` made one.

    Args:
        operand: an array.
        start_dimension: the first of the dimensions that become one.
        stop_dimension: the first one after them; None for all up to the end.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ValueError: no dimensions lie between these.

    >>> lax.collapse(np.zeros((2, 3, 4), np.float32), 0, 2).shape
    (6, 4)
    """
    shape = typeof(accept("collapse", operand)).shape
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    if start >= stop:
        raise ValueError(
            f"lax.collapse: no dimensions lie between {start_dimension} and {stop_dimension} of "
            f"{typeof(operand)}"
        )
    merged = math.prod(shape[start:stop])
    return ops.reshape(operand, shape=(*shape[:start], merged, *shape[stop:]))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """The operand with its dimensions in the order ``permutation``.

    Args:
        operand: an array.
        permutation: for each dimension of the result the one of the operand that it is.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ValueError: ``permutation`` does not name each dimension once.

    >>> lax.transpose(np.int32([[1, 2], [3, 4]]), (1, 0))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = accept("transpose", operand)
    return ops.transpose(x, perm=integers("transpose", "permutation", permutation))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The operand with the order of elements along ``dimensions`` reversed.

    Args:
        operand: an array.
        dimensions: the dimensions that are reversed.

    Returns:
        An array of the shape and dtype of the operand.

    >>> lax.rev(np.int32([1, 2, 3]), (0,))
    Array([3, 2, 1], dtype=int32)
    """
    x = accept("rev", operand)
    return ops.reverse(x, dims=_dims("rev", dimensions, typeof(x).ndim))


def _dims(who: str, dims: Any, ndim: int) -> tuple[int, ...]:
    return dimensions(f"lax.{who}", dims, ndim)


def expand_dims(array: ArrayLike, dimensions: Iterable[int]) -> Array:
    """The array with new dimensions of length 1 at these positions of the result.

    Args:
        array: an array of any shape and dtype.
        dimensions: where the new dimensions stand in the result.

    Returns:
        An array of the dtype of ``array``.

    Raises:
        ValueError: a dimension is named twice, or lies outside of the result.

    >>> lax.expand_dims(np.int32([1, 2]), (1,)).shape
    (2, 1)
    """
    x = accept("expand_dims", array)
    new = tuple(dimensions)
    return ops.expand_dims(x, _dims("expand_dims", new, typeof(x).ndim + len(new)))


def squeeze(array: ArrayLike, dimensions: Iterable[int]) -> Array:
    """The array without these dimensions, each of length 1.

    Args:
        array: an array.
        dimensions: the dimensions to be left out, which must have length 1.

    Returns:
        An array of the dtype of ``array``.

    Raises:
        ValueError: a dimension is longer than 1.

    >>> lax.squeeze(np.int32([[1, 2]]), (0,))
    Array([1, 2], dtype=int32)
    """
    x = accept("squeeze", array)
    dims = _dims("squeeze", dimensions, typeof(x).ndim)
    longer = [d for d in dims if typeof(x).shape[d] != 1]
    if longer:
        raise ValueError(
            f"lax.squeeze: dimension {longer[0]} of {typeof(x)} does not have length 1; "
            "reduce or index it"
        )
    return ops.squeeze(x, dims)


# ---- joining and cutting --------------------------------------------------------------------


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """The operands one after the other along ``dimension``.

    Args:
        operands: arrays that differ in one dimension at most.
        dimension: that dimension.

    Returns:
        An array of the dtype of the operands.

    Raises:
        ValueError: there are no operands.

    >>> lax.concatenate([np.int32([1, 2]), np.int32([3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    xs = [accept("concatenate", x) for x in operands]
    if not xs:
        raise ValueError("lax.concatenate: at least one operand is needed, got none")
    (dim,) = _dims("concatenate", dimension, typeof(xs[0]).ndim)
    return ops.concatenate(*xs, dim=dim)


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Arrays of one shape as the elements along a new dimension ``axis``.

    Args:
        operands: arrays of one shape and dtype.
        axis: where the new dimension stands in the result.

    Returns:
        An array of the dtype of the operands.

    Raises:
        ValueError: there are no operands.

    >>> lax.stack([np.int32([1, 2]), np.int32([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    xs = [accept("stack", x) for x in operands]
    if not xs:
        raise ValueError("lax.stack: at least one operand is needed, got none")
    return ops.stack(xs, dimension("lax.stack", axis, typeof(xs[0]).ndim + 1))


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """The elements of x along ``axis``, as a tuple of arrays.

    Args:
        x: an array, or a number.
        axis: the dimension along which it works.

    Returns:
        A tuple of arrays, without ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.unstack(np.int32([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    dim = dimension("lax.unstack", axis, typeof(accept("unstack", x)).ndim)
    return tuple(index_in_dim(x, i, dim, False) for i in range(typeof(x).shape[dim]))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """The operand cut along ``axis`` into consecutive parts of lengths ``sizes``.

    Args:
        operand: an array.
        sizes: the lengths of the parts, which together are that of the dimension.
        axis: the dimension along which it works.

    Returns:
        A list of arrays.

    Raises:
        ValueError: the sizes do not add up to the length of the dimension.

    >>> lax.split(np.int32([1, 2, 3]), (1, 2))
    [Array([1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    x = accept("split", operand)
    lengths = integers("split", "sizes", sizes)
    dim = dimension("lax.split", axis, typeof(x).ndim)
    if sum(lengths) != typeof(x).shape[dim] or any(n < 0 for n in lengths):
        raise ValueError(
            f"lax.split: sizes must add up to the length of dimension {dim} of {typeof(x)}, "
            f"got {lengths}"
        )
    return ops.split(x, lengths, dim)


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """The operand with ``padding_value`` around it and between its elements.

    ``padding_config`` has (low, high, interior) per dimension: how many elements come before,
    after, and between neighbours. A negative low or high cuts elements off.

    Args:
        operand: an array.
        padding_value: what is put around, an array without dimensions.
        padding_config: for each dimension (low, high, interior): how many elements in front, at the
            end, and between neighbours. Negative ones take elements away.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ValueError: a dimension has no triple (low, high, interior).

    >>> lax.pad(np.int32([1, 2]), 0, [(1, 2, 1)])
    Array([0, 1, 0, 2, 0, 0], dtype=int32)
    """
    x = accept("pad", operand)
    value = accept("pad", padding_value)
    if is_python(value):
        value = dtypes.scalar(value, typeof(x).dtype)
    elif typeof(x).weak:
        value = one("pad", value)
    config = tuple(integers("pad", "each entry of padding_config", c) for c in padding_config)
    if any(len(c) != 3 for c in config):
        raise ValueError(f"lax.pad: padding_config needs (low, high, interior), got {config}")
    return ops.pad(x, value, config=config)
