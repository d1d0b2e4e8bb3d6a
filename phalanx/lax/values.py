"""Values as arrays: what dtype they have, and arrays like others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import check_fills
from phalanx.core.types import Array, typeof
from phalanx.lax.layout import sharding_like, with_sharding_constraint
from phalanx.lax.operands import accept, integers
from phalanx.primitives.domains import I32
from phalanx.transforms.stage import is_value


def dtype(x: Any) -> np.dtype:
    """The dtype of an array or a number, or the one that a type or a name of one means here.

    Args:
        x: an array, or a number.

    Returns:
        A dtype of NumPy.

    Raises:
        TypeError: it is nothing of that kind.

    >>> lax.dtype(2.0), lax.dtype(np.int64)
    (dtype('float32'), dtype('int32'))
    """
    if is_value(x):
        return typeof(x).dtype
    if x is None:
        raise TypeError("lax.dtype: an array, a number or a dtype is needed, got None")
    return dtypes.canonical(x)


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as a vector of int32.

    Args:
        shape: a tuple of integers.

    Returns:
        int32 [ndim].

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return stage(np.asarray(integers("shape_as_value", "shape", shape), I32))


def stage(x: Any, /) -> Array:
    """``x`` as an array; inside ``jit`` and its like, as a value of the program.

    Args:
        x: an array, or a number.

    Returns:
        ``x`` as an array.

    >>> lax.stage(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    type = typeof(accept("stage", x))
    return ops.convert(x, dtype=type.dtype, weak=type.weak)


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """``arr`` repeated to the shape of ``like_arr``, as NumPy aligns shapes, lying like that.

    Args:
        arr: an array.
        like_arr: another one, whose shape the result gets.

    Returns:
        An array of the shape of ``like_arr``, of the dtype of ``arr``.

    Raises:
        ShapeError: the shape is another in the end.

    >>> lax.broadcast_like(np.int32([1, 2]), np.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x, like = (typeof(accept("broadcast_like", a)) for a in (arr, like_arr))
    check_fills("lax.broadcast_like", "an array", x.shape, like.shape)
    out = ops.broadcast_to(arr, like.shape)
    sharding = sharding_like(like_arr, like.shape)
    return out if sharding is None else with_sharding_constraint(out, sharding)
