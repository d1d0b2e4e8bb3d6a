"""The polar decomposition by iteration: x = u h, u with orthonormal columns, h Hermitian."""

from __future__ import annotations

import operator
from typing import Any

from phalanx import ops
from phalanx.base.errors import ShapeError
from phalanx.core.types import Array, typeof
from phalanx.lax.operands import accept
from phalanx.ops.domains import I32
from phalanx.ops.linalg.algebra import adjoint, conjugate, matmul, real_part, symmetrized
from phalanx.ops.linalg.family import check_matrices
from phalanx.ops.linalg.polar import newton, step, weights
from phalanx.ops.linalg.signs import rounding_error, scaled


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
    error = rounding_error(kind) if eps is None else float(eps)
    steps = list(weights(error, 10 if max_iterations is None else operator.index(max_iterations)))
    u = before = scaled(x)
    for weight in steps:
        before, u = u, step(u, *weight)
    u = newton(u)
    close = ops.le(_norm(ops.sub(u, before)), (5 * error) ** (1 / 3))
    return u, symmetrized(matmul(adjoint(u), x)), ops.full((), len(steps), I32), close


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
