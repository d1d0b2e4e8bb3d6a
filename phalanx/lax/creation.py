"""Arrays of one value, and of the numbers along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.core.types import Array, ArrayLike, ArrayType, DTypeLike, ShapeLike, typeof
from phalanx.lax.conversion import convert_element_type
from phalanx.lax.layout import in_place, sharding_like, takes_out_sharding
from phalanx.lax.operands import OPERANDS, accept, dtype_of, is_python, lengths_of
from phalanx.primitives.shape import dimensions
from phalanx.primitives.vary import varying_like


def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: Any = None,
) -> Array:
    """The array of ``shape`` with ``fill_value``, a scalar, everywhere.

    With a ``sharding`` it lies as that says, and each device makes its part.

    Args:
        shape: the shape of the result: a tuple of integers, or an integer.
        fill_value: the element, a number.
        dtype: the dtype of the result; None for that of ``fill_value``.
        sharding: where the result lies; None for the default device.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: ``fill_value`` has dimensions.

    >>> lax.full((2, 3), 1.5)
    Array([[1.5, 1.5, 1.5],
           [1.5, 1.5, 1.5]], dtype=float32, weak_type=True)
    """
    if sharding is not None:
        return in_place(sharding, full, (shape, fill_value, dtype))
    lengths = lengths_of("full", "shape", shape)
    type = typeof(accept("full", fill_value))
    if type.shape:
        raise TypeError(f"lax.full: fill_value must be a scalar, got {type}")
    target = dtype_of(dtype)
    if not is_python(fill_value):
        if target is not None:
            fill_value = convert_element_type(fill_value, target)
        return ops.full(lengths, fill_value, target or type.dtype)
    filled = ops.full(lengths, fill_value, target or type.dtype)
    if target is None and not dtypes.is_bool(type.dtype):
        return ops.convert(filled, dtype=type.dtype, weak=True)
    return filled


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    sharding: Any = None,
) -> Array:
    """An array like ``x`` in shape, dtype and layout, with ``fill_value`` everywhere.

    Args:
        x: an array, or a number, or what describes an array, such as a ``ShapeDtypeStruct``.
        fill_value: the element, a number.
        dtype: the dtype of the result; None for that of ``x``.
        shape: the shape of the result; None for that of ``x``.
        sharding: where the result lies; None for where ``x`` does, or the default device.

    Returns:
        An array of the shape and dtype of ``x``, unless others are given.

    Raises:
        TypeError: ``fill_value`` is no scalar.
        ValueError: a length in ``shape`` is negative.

    >>> lax.full_like(np.float32([1, 2]), 3)
    Array([3., 3.], dtype=float32)
    """
    like: Any = x
    described = not isinstance(x, OPERANDS) and hasattr(like, "shape") and hasattr(like, "dtype")
    type = ArrayType(like.shape, like.dtype) if described else typeof(accept("full_like", x))
    lengths = type.shape if shape is None else lengths_of("full_like", "shape", shape)
    spec = sharding_like(x, lengths) if sharding is None else sharding
    out = varying_like(full(lengths, fill_value, dtype or type.dtype, sharding=spec), x)
    return ops.convert(out, dtype=type.dtype, weak=True) if type.weak and dtype is None else out


@takes_out_sharding
def empty(shape: Sequence[int], dtype: DTypeLike, *, out_sharding: Any = None) -> Array:
    """An array of ``shape``; its elements, zeros here, are not to be relied upon.

    Args:
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the result.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape and dtype.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> lax.empty((2,), np.int32)
    Array([0, 0], dtype=int32)
    """
    return full(shape, 0, dtype)


def iota(dtype: DTypeLike, size: int) -> Array:
    """The integers 0, 1, ..., size - 1 in order.

    Args:
        dtype: the dtype of the result.
        size: how many numbers.

    Returns:
        A vector of that dtype.

    >>> lax.iota(np.int32, 4)
    Array([0, 1, 2, 3], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


@takes_out_sharding
def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """The array of ``shape`` whose elements are their positions along ``dimension``.

    Args:
        dtype: the dtype of the result.
        shape: the shape of the result: a tuple of integers, or an integer.
        dimension: the dimension along which numbers rise.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape and dtype.

    Raises:
        AxisError: there is no dimension ``dimension``.
        ValueError: a length in ``shape`` is negative.

    >>> lax.broadcasted_iota(np.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    lengths = lengths_of("broadcasted_iota", "shape", shape)
    (dim,) = dimensions("lax.broadcasted_iota", dimension, len(lengths))
    return ops.iota(dtype=dtypes.requested(dtype), shape=lengths, dim=dim)
