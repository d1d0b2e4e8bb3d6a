"""Determinants of square matrices."""

from __future__ import annotations

from typing import Any

from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Active, Derivative, Example
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import add, broadcast, mul, neg, reduce_sum
from phalanx.ops.compare import eq, ne, select
from phalanx.ops.complex import c64
from phalanx.ops.domains import I32, f32
from phalanx.ops.linalg.algebra import (
    adjoint,
    diagonal,
    diagonal_matrix,
    identity_like,
    inverse_permutation,
    matmul,
    matrix_transposed,
    take_columns,
    take_rows,
    times_columns,
    upper,
)
from phalanx.ops.linalg.family import check_square, cubic, factorization
from phalanx.ops.linalg.lu import lu
from phalanx.ops.linalg.qr import qr
from phalanx.ops.linalg.triangular import triangular_solve
from phalanx.ops.reduce import reduce_prod
from phalanx.ops.shape import concatenate, iota, slice_dim, zeros_like


def _type(a: ArrayType) -> ArrayType:
    check_square("det", a)
    return ArrayType(a.shape[:-2], a.dtype)


def _lower(b: Builder, a: Value) -> Value:
    return b.traced(_by_lu, a)


def _by_lu(a: Any) -> Any:
    """The product of the diagonal of u, with a sign for each row that was exchanged."""
    factors, pivots, _ = lu(a)
    values, last = diagonal(factors), typeof(pivots).ndim - 1
    places = iota(dtype=I32, shape=typeof(pivots).shape, dim=last)
    return reduce_prod(select(ne(pivots, places), neg(values), values), dims=(last,))


def _linearize(active: Active, a: Any) -> Derivative:
    """The trace of the adjugate times da, of singular matrices as well."""
    cofactors = matrix_transposed(_adjugate(a))
    dims = tuple(range(typeof(a).ndim - 2, typeof(a).ndim))
    return det(a), lambda ta: reduce_sum(mul(cofactors, ta), dims=dims)


def _adjugate(a: Any) -> Any:
    """det(a) a⁻¹, from a = q r p with columns exchanged so that zeros on the diagonal come last.

    Only the last is divided by in neither factor: r⁻¹ det(r) is finite where that one is zero. If
    others are, all is zero.
    """
    kind = typeof(a)
    last, n = kind.ndim - 2, kind.shape[-1]
    if not n:
        return a
    q, r, order = qr(a, full=False, pivoting=True)
    back = inverse_permutation(order)
    on = diagonal(r)
    first, end = slice_dim(on, 0, n - 1, last), slice_dim(on, n - 1, n, last)
    ones = add(zeros_like(end), 1)
    safe = concatenate(select(eq(first, 0), 1, first), ones, dim=last)
    inverse = triangular_solve(
        add(upper(r, 1), diagonal_matrix(safe)),
        identity_like(r),
        left=True,
        low=False,
        op="N",
        unit=False,
    )
    others = broadcast(end, shape=typeof(first).shape, dims=tuple(range(last + 1)))
    product = reduce_prod(first, dims=(last,))
    sign = det(take_columns(q, back))
    scale = broadcast(mul(product, sign), shape=typeof(on).shape, dims=tuple(range(last)))
    scale = mul(concatenate(others, ones, dim=last), scale)
    return take_rows(matmul(times_columns(inverse, scale), adjoint(q)), back)


det = factorization(
    "det",
    _type,
    _lower,
    linearize=_linearize,
    operations=cubic(2 / 3),
    doc="the determinant; LAPACK getrf",
    examples=[
        Example((f32(4, 4),)),
        Example((f32(2, 3, 3),), order=1),
        Example((c64(3, 3),), order=1),
    ],
)
