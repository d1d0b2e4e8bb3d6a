"""Sorting, and the greatest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.lengths import integer
from phalanx.core.types import Array, typeof
from phalanx.lax.operands import accept
from phalanx.primitives.basis import move
from phalanx.primitives.shape import dimension

_SEQUENCES: tuple[type, ...] = (Sequence,)


def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array | tuple[Array, ...]:
    """The elements in ascending order along ``dimension``; NaN comes last.

    Args:
        operand: an array, or a sequence of arrays of one shape, which are permuted together.
        dimension: the dimension along which to sort.
        is_stable: whether equal elements keep their order.
        num_keys: how many of the arrays, from the first on, are compared.

    Returns:
        An array, or a tuple of arrays, of the shapes of the operands.

    Raises:
        TypeError: shapes differ.
        ValueError: there is no such dimension.

    >>> lax.sort(np.int32([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    several = isinstance(operand, _SEQUENCES)
    xs = [accept("sort", x) for x in (operand if several else (operand,))]
    if not 1 <= num_keys <= len(xs):
        raise ValueError(
            f"lax.sort: num_keys must be between 1 and the number of operands, {len(xs)}, got "
            f"{num_keys}"
        )
    out = ops.sort(
        *xs, dim=_dimension("sort", dimension, xs[0]), num_keys=num_keys, stable=bool(is_stable)
    )
    return tuple(out) if several else out[0]


def _dimension(who: str, dim: int, x: Any) -> int:
    return dimension(f"lax.{who}", dim, typeof(x).ndim)


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """``keys`` in ascending order along ``dimension``, and ``values`` permuted like them.

    Args:
        keys: what is compared.
        values: what moves along, of the same shape.
        dimension: the dimension along which to sort.
        is_stable: whether equal keys keep their order.

    Returns:
        Two arrays like the operands.

    Raises:
        AxisError: there is no dimension ``dimension``.
        TypeError: the operands differ in shape.

    >>> lax.sort_key_val(np.int32([3, 1, 2]), np.float32([0.3, 0.1, 0.2]))
    (Array([1, 2, 3], dtype=int32), Array([0.1, 0.2, 0.3], dtype=float32))
    """
    first, second = sort((keys, values), dimension, is_stable)
    return first, second


def top_k(operand: Any, k: int, *, axis: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """The k greatest elements along ``axis``, in descending order, and their positions.

    Of equal elements the first comes first, whether or not ``is_stable`` asks for it.

    Args:
        operand: an array.
        k: how many.
        axis: the dimension along which it works.
        is_stable: has no meaning: of equal elements the first comes first.

    Returns:
        Two arrays, which are ``k`` long along ``axis``: elements of the dtype of the operand, and
        int32.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``operand`` is complex.

    >>> lax.top_k(np.int32([3, 1, 2]), 2)
    (Array([3, 2], dtype=int32), Array([0, 2], dtype=int32))
    """
    x = accept("top_k", operand)
    wanted = integer("lax.top_k", "k", k)
    return _along_last("top_k", x, axis, lambda x: ops.top_k(x, k=wanted))


def _along_last(who: str, x: Any, axis: int, find: Callable[[Any], Any]) -> tuple[Array, Array]:
    """Values and positions that ``find`` finds along the last dimension, along ``axis``."""
    dim, last = _dimension(who, axis, x), typeof(x).ndim - 1
    values, places = find(move(x, dim, last))
    return move(values, last, dim), move(places, last, dim)


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """k great elements along a dimension, in descending order, and their positions.

    On TPUs they are searched by what is fast there (Chern et al. 2022), for floats of 16 and 32
    bits. Elsewhere they are the k greatest: the search is exact, which satisfies every target.

    Args:
        operand: floating-point numbers.
        k: how many.
        reduction_dimension: the dimension along which to search.
        recall_target: how many of the k greatest must be among them, as a share, above 0 and at
            most 1.
        reduction_input_size_override: of how many elements those of the operand are a part, for
            the recall; -1: they are all.
        aggregate_to_topk: whether there are to be k, and no more.

    Returns:
        Values of the dtype of the operand, and positions of int32, both k long along the dimension;
        without ``aggregate_to_topk`` there may be more.

    Raises:
        TypeError: the operand has no floating-point numbers.
        ValueError: there are fewer than k elements, or the target is no share.

    >>> lax.approx_max_k(np.float32([3, 1, 2]), 2)
    (Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    x = _searched("approx_max_k", operand, recall_target)
    how = {"recall": float(recall_target), "whole": int(reduction_input_size_override)}
    found = partial(ops.approx_top_k, k=integer("lax.approx_max_k", "k", k), **how)
    return _along_last("approx_max_k", x, reduction_dimension, found)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """k small elements along a dimension, in ascending order, and their positions.

    The parameters and errors are those of ``approx_max_k``.

    Args:
        operand: floating-point numbers.
        k: how many.
        reduction_dimension: the dimension along which to search.
        recall_target: how many of the k least must be among them, as a share, above 0 and at most
            1.
        reduction_input_size_override: of how many elements those of the operand are a part, for the
            recall; -1: they are all.
        aggregate_to_topk: whether there are to be k, and no more.

    Returns:
        Values of the dtype of the operand, and positions of int32, both k long along the dimension;
        without ``aggregate_to_topk`` there may be more.

    Raises:
        AxisError: there is no dimension ``reduction_dimension``.
        TypeError: ``operand`` is complex.

    >>> lax.approx_min_k(np.float32([3, 1, 2]), 2)
    (Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32))
    """
    x = _searched("approx_min_k", operand, recall_target)
    how = {"recall": float(recall_target), "whole": int(reduction_input_size_override)}
    found = partial(ops.approx_top_k, k=integer("lax.approx_min_k", "k", k), **how)
    values, places = _along_last("approx_min_k", ops.neg(x), reduction_dimension, found)
    return ops.neg(values), places


def _searched(who: str, operand: Any, recall_target: float) -> Any:
    type = typeof(accept(who, operand))
    if not dtypes.is_floating(type.dtype):
        raise TypeError(f"lax.{who}: floating-point numbers are needed, got {type}")
    if not 0 < recall_target <= 1:
        raise ValueError(
            f"lax.{who}: recall_target must be above 0 and at most 1, got {recall_target}"
        )
    return operand
