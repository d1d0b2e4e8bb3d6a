"""The polar decomposition by iteration: x = u h, u with orthonormal columns, h Hermitian.

The weights of Halley's iteration (QDWH; Nakatsukasa, Bai and Gygi 2010) depend on the least
singular value alone. That is at least the rounding error times the largest, or as good as zero, so
they are known before, and how many steps there are.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.core.types import Array, typeof
from phalanx.lax.operands import accept
from phalanx.ops.basis import I32
from phalanx.ops.linalg import cholesky, qr, triangular_solve
from phalanx.ops.linalg.algebra import (
    adjoint,
    complex_as,
    conjugate,
    identity_like,
    matmul,
    real_part,
    symmetrized,
)
from phalanx.ops.linalg.family import check_matrices

_LARGE = 100.0  # weights above which the way by a Cholesky factor loses digits


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u h.

    Args:
        x: matrices [..., m, n], with m at least n.
        is_hermitian: whether x is Hermitian; the result is the same.
        max_iterations: of which there are at most so many, 10 if it is not given.
        eps: the relative error that is wanted; by default that of the dtype.
        dynamic_shape: (m, n), which may be traced: the part of x that counts, zeros elsewhere.

    Returns:
        u [..., m, n], h [..., n, n], how many iterations there were, and whether they converged.

    Raises:
        ShapeError: there are more columns than rows.

    >>> u, h, _, _ = lax.linalg.qdwh(np.float32([[0, -2], [1, 0]]))
    >>> print(h.round(3) + 0.0)
    [[1. 0.]
     [0. 2.]]
    """
    x = accept("linalg.qdwh", x)
    kind = typeof(x)
    check_matrices("qdwh", kind)
    if kind.shape[-2] < kind.shape[-1]:
        raise ShapeError(f"qdwh: there must be as many rows as columns, or more, got {kind}")
    if dynamic_shape is not None:
        x = _corner(x, dynamic_shape)
    error = float(dtypes.finfo(kind.dtype).eps) if eps is None else float(eps)
    steps = list(_weights(error, 10 if max_iterations is None else operator.index(max_iterations)))
    u = before = ops.div(x, _repeated(_bound(x), x))
    for a, b, c in steps:
        before, u = u, _step(u, a, b, c)
    # one step of Newton and Schulz, for the last digits
    u = ops.sub(ops.mul(u, 1.5), ops.mul(matmul(u, matmul(adjoint(u), u)), 0.5))
    close = ops.le(_norm(ops.sub(u, before)), (5 * error) ** (1 / 3))
    return u, symmetrized(matmul(adjoint(u), x)), ops.full((), len(steps), I32), close


def _weights(error: float, most: int) -> Iterator[tuple[float, float, float]]:
    """a, b and c of each step x (a + b xᴴx) / (1 + c xᴴx), which takes the least singular value
    from ``error`` to nearly 1."""
    least = error
    for _ in range(most):
        if abs(1 - least) < 5 * error:
            return
        square = least * least
        root = np.cbrt(4 * (1 - square) / square**2)
        outer = np.sqrt(1 + root)
        a = outer + np.sqrt(8 - 4 * root + 8 * (2 - square) / (square * outer)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        least = min(least * (a + b * square) / (1 + c * square), 1.0)
        yield float(a), float(b), float(c)


def _step(x: Any, a: float, b: float, c: float) -> Any:
    inner = matmul(adjoint(x), x)
    one = identity_like(inner)
    if c > _LARGE:
        rows = typeof(x).ndim - 2
        m = typeof(x).shape[rows]
        q, _ = qr(ops.concatenate(ops.mul(x, c**0.5), one, dim=rows), full=False, pivoting=False)
        upper = ops.slice_dim(q, 0, m, rows)
        lower = ops.slice_dim(q, m, typeof(q).shape[rows], rows)
        change = ops.mul(matmul(upper, adjoint(lower)), (a - b / c) / c**0.5)
    else:
        factor = cholesky(ops.add(one, ops.mul(inner, c)))
        half = triangular_solve(factor, x, left=False, low=True, op="C", unit=False)
        change = triangular_solve(factor, half, left=False, low=True, op="N", unit=False)
        change = ops.mul(change, a - b / c)
    return ops.add(ops.mul(x, b / c), change)


def _bound(x: Any) -> Any:
    """At least the largest singular value, and at most √n times that; 1 for matrices of zeros."""
    size, last = ops.abs(x), typeof(x).ndim - 1
    columns, rows = (ops.reduce_sum(size, dims=(d,)) for d in (last - 1, last))
    if not typeof(x).shape[-1]:
        return ops.reduce_sum(rows, dims=(last - 1,))
    both = [ops.reduce_max(each, dims=(last - 1,)) for each in (columns, rows)]
    bound = ops.sqrt(ops.mul(*both))
    return ops.select(ops.eq(bound, 0), 1, bound)


def _repeated(x: Any, y: Any) -> Any:
    shape = typeof(y).shape
    return complex_as(ops.broadcast(x, shape=shape, dims=tuple(range(len(shape) - 2))), y)


def _norm(x: Any) -> Any:
    last = typeof(x).ndim - 1
    squares = real_part(ops.mul(x, conjugate(x)))
    return ops.sqrt(ops.reduce_sum(squares, dims=(last - 1, last)))


def _corner(x: Any, shape: tuple[Any, Any]) -> Any:
    kind = typeof(x)
    for dim, length in zip((kind.ndim - 2, kind.ndim - 1), shape, strict=True):
        places = ops.iota(dtype=I32, shape=kind.shape, dim=dim)
        end = ops.broadcast(ops.convert(length, dtype=I32, weak=False), shape=kind.shape, dims=())
        x = ops.select(ops.lt(places, end), x, 0)
    return x
