"""Reductions over dimensions, and along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.core.primitive import Primitive
from phalanx.core.types import Array, ArrayLike, DTypeLike, typeof
from phalanx.lax.combine import Combination
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.operands import accept
from phalanx.primitives.shape import dimension
from phalanx.primitives.shape import dimensions as all_dimensions

# ---- over dimensions ------------------------------------------------------------------------


def _reduced(who: str, prim: Primitive, x: ArrayLike, axes: Any) -> Array:
    dims = all_dimensions(f"lax.{who}", axes, typeof(accept(who, x)).ndim)
    return prim(x, dims=dims)


@takes_out_sharding
def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over dimensions ``axes``.

    Args:
        operand: an array.
        axes: the dimensions that are reduced, a sequence of integers.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of the operand, without those dimensions.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.reduce_sum(np.int32([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    """
    return _reduced("reduce_sum", ops.reduce_sum, operand, axes)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over dimensions ``axes``.

    Args:
        operand: an array.
        axes: the dimensions that are reduced, a sequence of integers.

    Returns:
        An array of the dtype of the operand, without those dimensions.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.reduce_prod(np.int32([[1, 2], [3, 4]]), (0,))
    Array([3, 8], dtype=int32)
    """
    return _reduced("reduce_prod", ops.reduce_prod, operand, axes)


@takes_out_sharding
def reduce_max(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The greatest element over dimensions ``axes``.

    Args:
        operand: an array.
        axes: the dimensions that are reduced, a sequence of integers.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of the operand, without those dimensions.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.reduce_max(np.int32([[1, 2], [3, 4]]), (0,))
    Array([3, 4], dtype=int32)
    """
    return _reduced("reduce_max", ops.reduce_max, operand, axes)


@takes_out_sharding
def reduce_min(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The smallest element over dimensions ``axes``.

    Args:
        operand: an array.
        axes: the dimensions that are reduced, a sequence of integers.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the dtype of the operand, without those dimensions.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.reduce_min(np.int32([[1, 2], [3, 4]]), (0,))
    Array([1, 2], dtype=int32)
    """
    return _reduced("reduce_min", ops.reduce_min, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise and over dimensions ``axes``; of booleans, whether all are true.

    Args:
        operand: an array.
        axes: the dimensions that are reduced, a sequence of integers.

    Returns:
        An array of the dtype of the operand, without those dimensions.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.reduce_and(np.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return _reduced("reduce_and", ops.reduce_and, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise or over dimensions ``axes``; of booleans, whether any is true.

    Args:
        operand: an array.
        axes: the dimensions that are reduced, a sequence of integers.

    Returns:
        An array of the dtype of the operand, without those dimensions.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.reduce_or(np.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return _reduced("reduce_or", ops.reduce_or, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise exclusive or over dimensions ``axes``; of booleans, whether an odd number is.

    Args:
        operand: an array.
        axes: the dimensions that are reduced, a sequence of integers.

    Returns:
        An array of the dtype of the operand, without those dimensions.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> lax.reduce_xor(np.array([True, True]), (0,))
    Array(False, dtype=bool)
    """
    return _reduced("reduce_xor", ops.reduce_xor, operand, axes)


def _position(who: str, prim: Primitive, x: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    dim = dimension(f"lax.{who}", axis, typeof(accept(who, x)).ndim)
    return prim(x, dim=dim, index_dtype=dtypes.requested(index_dtype))


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The first position of the greatest element along ``axis``; that of a NaN if there is one.

    Args:
        operand: an array.
        axis: the dimension along which to search.
        index_dtype: the integer dtype of the result.

    Returns:
        Integers of ``index_dtype``, without the dimension.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.argmax(np.float32([1, 3, 2]), 0, np.int32)
    Array(1, dtype=int32)
    """
    return _position("argmax", ops.argmax, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The first position of the smallest element along ``axis``; that of a NaN if there is one.

    Args:
        operand: an array.
        axis: the dimension along which to search.
        index_dtype: the integer dtype of the result.

    Returns:
        Integers of ``index_dtype``, without the dimension.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.argmin(np.float32([1, 3, 2]), 0, np.int32)
    Array(0, dtype=int32)
    """
    return _position("argmin", ops.argmin, operand, axis, index_dtype)


# ---- along a dimension ----------------------------------------------------------------------


def _accumulated(who: str, prim: Primitive, x: ArrayLike, axis: int, reverse: bool) -> Array:
    dim = dimension(f"lax.{who}", axis, typeof(accept(who, x)).ndim)
    return prim(x, dim=dim, reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The sums of the first 1, 2, ... elements along ``axis``, of the last with ``reverse``.

    Args:
        operand: an array.
        axis: the dimension along which it works.
        reverse: whether to go from the last element to the first.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.cumsum(np.int32([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _accumulated("cumsum", ops.cumsum, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The products of the first 1, 2, ... elements along ``axis``.

    Args:
        operand: an array.
        axis: the dimension along which it works.
        reverse: whether to go from the last element to the first.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.cumprod(np.int32([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _accumulated("cumprod", ops.cumprod, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The greatest of the first 1, 2, ... elements along ``axis``.

    Args:
        operand: an array.
        axis: the dimension along which it works.
        reverse: whether to go from the last element to the first.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.cummax(np.int32([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _accumulated("cummax", ops.cummax, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest of the first 1, 2, ... elements along ``axis``.

    Args:
        operand: an array.
        axis: the dimension along which it works.
        reverse: whether to go from the last element to the first.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> lax.cummin(np.int32([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return _accumulated("cummin", ops.cummin, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The logarithms of the sums of exp of the first 1, 2, ... elements along ``axis``.

    Args:
        operand: an array.
        axis: the dimension along which it works.
        reverse: whether to go from the last element to the first.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``operand`` is complex.

    >>> lax.cumlogsumexp(np.float32([0, 0]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return _accumulated("cumlogsumexp", ops.cumlogsumexp, operand, axis, reverse)


# ---- with a function of two scalars ---------------------------------------------------------


@takes_out_sharding
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Any:
    """Elements over ``dimensions`` combined in pairs by an associative function.

    Args:
        operands: an array, or a tree of arrays of one shape.
        init_values: scalars, combined with the result; a tree like ``operands``.
        computation: of two scalars, or two trees of scalars like ``operands``; such as
            ``lax.add``, ``lax.max``, or one of your own.
        dimensions: those that are reduced.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        A tree like ``operands``, whose arrays lack those dimensions.

    Raises:
        TypeError: an initial value is no scalar of the dtype of its operand.

    >>> lax.reduce(np.int32([[1, 2], [3, 4]]), 0, lax.add, (0,))
    Array([4, 6], dtype=int32)
    """
    how = Combination("reduce", operands, init_values, computation)
    before = how.types[0].shape
    dims = all_dimensions("lax.reduce", dimensions, len(before))
    if how.monoid is not None:
        out = how.monoid.over_dims(how.xs[0], dims=dims)
        return out if how.starts_with_identity else how.from_start([out])
    if any(before[d] == 0 for d in dims):
        remaining = tuple(n for d, n in enumerate(before) if d not in dims)
        return how.treedef.unflatten(how.start(remaining))
    return how.from_start(how.over_dims(how.xs, dims))
