"""Sorting, and the greatest elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx import ops
from phalanx.core.types import Array, typeof
from phalanx.lax.operands import accept
from phalanx.ops.basis import move
from phalanx.ops.shape import dimension


def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array | tuple[Array, ...]:
    """The elements in ascending order along ``dimension``; NaN comes last.

    Args:
        operand: an array, or a sequence of arrays of one shape, which are permuted together.
        dimension: along which to sort.
        is_stable: whether equal elements keep their order.
        num_keys: how many of the arrays, from the first on, are compared.

    Raises:
        TypeError: shapes differ.
        ValueError: there is no such dimension.

    >>> lax.sort(np.int32([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    several = isinstance(operand, Sequence)
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

    >>> lax.sort_key_val(np.int32([3, 1, 2]), np.float32([0.3, 0.1, 0.2]))
    (Array([1, 2, 3], dtype=int32), Array([0.1, 0.2, 0.3], dtype=float32))
    """
    first, second = sort((keys, values), dimension, is_stable)
    return first, second


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The k greatest elements along ``axis``, in descending order, and their positions.

    >>> lax.top_k(np.int32([3, 1, 2]), 2)
    (Array([3, 2], dtype=int32), Array([0, 2], dtype=int32))
    """
    x = accept("top_k", operand)
    dim = _dimension("top_k", axis, x)
    last = typeof(x).ndim - 1
    values, places = ops.top_k(move(x, dim, last), k=int(k))
    return move(values, last, dim), move(places, last, dim)
