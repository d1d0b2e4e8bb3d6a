"""Operands of linear algebra: arrays of matrices, of dtypes that LAPACK has."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base.broadcasting import common_shape
from phalanx.base.errors import ShapeError
from phalanx.core.types import Array
from phalanx.numpy.promotion import convert, inexact, promote_arrays
from phalanx.primitives.linalg.family import of_lapack


def in_lapack(who: str, a: Any) -> Array:
    """``a`` as an array of a dtype that LAPACK has: float32 in place of narrower ones."""
    x = inexact(who, a)
    return x if of_lapack(x.dtype) else convert(x, np.dtype("float32"))


def matrices(who: str, a: Any) -> Array:
    """``a`` as an array of matrices [..., m, n], of a floating-point or complex dtype.

    Raises:
        ShapeError: it has fewer than 2 dimensions.
    """
    x = in_lapack(who, a)
    if x.ndim < 2:
        raise ShapeError(f"{who}: matrices [..., m, n] are needed, got {x.aval}")
    return x


def square(who: str, x: Array) -> Array:
    """``x``, if its matrices are square.

    Raises:
        ShapeError: they are not.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{who}: square matrices [..., n, n] are needed, got {x.aval}")
    return x


def pair(who: str, a: Any, b: Any) -> tuple[Array, Array]:
    """Two operands as arrays of one floating-point or complex dtype."""
    x, y = promote_arrays(who, (a, b))
    return in_lapack(who, x), in_lapack(who, y)


def batched(who: str, x: Array, y: Array) -> tuple[Array, Array]:
    """Matrices with the dimensions in front repeated to their common shape."""
    front = common_shape(who, x.shape[:-2], y.shape[:-2])
    return tuple(ops.broadcast_to(m, (*front, *m.shape[-2:])) for m in (x, y))  # type: ignore
