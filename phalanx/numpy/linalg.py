"""Linear algebra that needs no factorization: norms, powers, products."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import ops
from phalanx.base.dtypes import COMPLEXES
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import absolute as abs
from phalanx.numpy.arithmetic import literal, power
from phalanx.numpy.contraction import cross as _cross
from phalanx.numpy.contraction import matmul, multi_dot, outer, tensordot, vecdot
from phalanx.numpy.one_program import one_program
from phalanx.numpy.promotion import ArrayLike, as_array, dims, inexact
from phalanx.numpy.reductions import max, min, sum
from phalanx.numpy.shaping import matrix_transpose
from phalanx.numpy.structured import diagonal as _diagonal
from phalanx.numpy.structured import eye
from phalanx.numpy.structured import trace as _trace

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


@one_program
def norm(
    x: ArrayLike,
    ord: Any = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """The norm of vectors along one axis, of matrices along two, or of all elements.

    Args:
        x: the array.
        ord: of vectors: 2 (the default), another p, inf, -inf, or 0, which counts. Of matrices:
            "fro" (the default), 1, -1, inf or -inf.
        axis: one axis or two; without it and without ``ord``, all elements as one vector.
        keepdims: whether the reduced axes stay, with length 1.

    >>> print(jnp.linalg.norm(jnp.array([3.0, 4.0])))
    5.0
    """
    x = inexact("norm", x)
    if axis is None and ord is None:
        over = tuple(range(x.ndim))
        return _euclidean(x, over, keepdims)
    over = dims("norm", axis, x)
    if len(over) == 1:
        return _vector_norm(x, 2 if ord is None else ord, over, keepdims)
    if len(over) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, (over[0], over[1]), keepdims)
    raise ValueError(f"norm: one axis or two are needed, got {over} of an array {x.aval}")


def _euclidean(x: Any, over: tuple[int, ...], keepdims: bool) -> Any:
    if x.aval.dtype in COMPLEXES:
        squares = ops.add(*(ops.mul(p, p) for p in (ops.real(x), ops.imag(x))))
    else:
        squares = ops.mul(x, x)
    return ops.sqrt(sum(squares, over, keepdims=keepdims))


def _vector_norm(x: Any, ord: Any, over: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"norm: of vectors, ord must be a number, got {ord!r}")
    if ord == 2:
        return _euclidean(x, over, keepdims)
    size = abs(x)
    if ord == np.inf:
        return max(size, over, keepdims=keepdims)
    if ord == -np.inf:
        return min(size, over, keepdims=keepdims)
    if ord == 1:
        return sum(size, over, keepdims=keepdims)
    if ord == 0:
        count = ops.convert(
            ops.ne(size, literal(size, 0)), dtype=size.aval.dtype, weak=False
        )
        return sum(count, over, keepdims=keepdims)
    return power(sum(power(size, ord), over, keepdims=keepdims), 1.0 / ord)


def _matrix_norm(x: Any, ord: Any, over: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return _euclidean(x, over, keepdims)
    choose = {1: max, np.inf: max, -1: min, -np.inf: min}.get(ord)
    if choose is None:
        raise ValueError(
            f"norm: of matrices, ord must be 'fro', 1, -1, inf or -inf, got {ord!r}; 2, -2 and "
            "'nuc' need singular values, which are not available"
        )
    first, second = over if ord in (1, -1) else (over[1], over[0])
    totals = sum(abs(x), first, keepdims=True)
    extreme = choose(totals, second, keepdims=True)
    return extreme if keepdims else ops.squeeze(extreme, over)



@one_program
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Array:
    """The norm of the elements over ``axis`` as one vector; see ``norm`` for ``ord``.

    >>> print(jnp.linalg.vector_norm(jnp.array([[3.0], [4.0]])))
    5.0
    """
    x = inexact("vector_norm", x)
    return _vector_norm(x, ord, dims("vector_norm", axis, x), keepdims)


@one_program
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of the matrices [..., n, m]; see ``norm`` for ``ord``.

    >>> print(jnp.linalg.matrix_norm(jnp.array([[3.0, 4.0]])))
    5.0
    """
    x = inexact("matrix_norm", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_norm: at least 2 dimensions are needed, got {x.aval}")
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The product of n copies of square matrices [..., m, m]; of none, the identity.

    >>> print(jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3))
    [[1 3]
     [0 1]]
    """
    x = as_array("matrix_power", a)
    count = operator.index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power: square matrices are needed, got {x.aval}")
    if count < 0:
        raise ValueError(
            f"matrix_power: the power must not be negative, got {count}: there is no inverse"
        )
    if count == 0:
        return ops.broadcast_to(eye(x.shape[-1], dtype=x.aval.dtype), x.shape)
    out: Any = None
    while True:
        if count % 2:
            out = x if out is None else matmul(out, x)
        count //= 2
        if not count:
            return out
        x = matmul(x, x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Diagonal ``offset`` of the matrices [..., n, m].

    >>> print(jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]])))
    [1 4]
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of diagonal ``offset`` of the matrices [..., n, m].

    >>> print(jnp.linalg.trace(jnp.array([[1, 2], [3, 4]])))
    5
    """
    return _trace(x, offset, -2, -1, dtype)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector product of vectors of length 3 along ``axis``.

    >>> print(jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
    [0 0 1]
    """
    return _cross(x1, x2, axis=axis)
