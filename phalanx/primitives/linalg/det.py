"""Determinants of square matrices, and their signs and logarithms."""

from __future__ import annotations

from typing import Any

from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import ZERO, Active, Derivative, Example
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, broadcast, mul, neg, reduce_sum
from phalanx.primitives.compare import eq, ne, select
from phalanx.primitives.complex import c64, complex, imag, real
from phalanx.primitives.domains import I32, f32
from phalanx.primitives.elementwise import abs, log, sign
from phalanx.primitives.linalg.algebra import (
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
from phalanx.primitives.linalg.family import check_square, cubic, factorization, real_of
from phalanx.primitives.linalg.lu import lu, lu_solve
from phalanx.primitives.linalg.qr import qr
from phalanx.primitives.linalg.triangular import triangular_solve
from phalanx.primitives.reduce import reduce_prod
from phalanx.primitives.shape import concatenate, iota, slice_dim, zeros_like


def _type(a: ArrayType) -> ArrayType:
    check_square("det", a)
    return ArrayType(a.shape[:-2], a.dtype)


def _lower(b: Builder, a: Value) -> Value:
    return b.traced(_by_lu, a)


def _by_lu(a: Any) -> Any:
    factors, pivots, _ = lu(a)
    return reduce_prod(_turned(factors, pivots), dims=(typeof(pivots).ndim - 1,))


def _turned(factors: Any, pivots: Any) -> Any:
    """The diagonal of u, whose product is the determinant: negative where rows were exchanged."""
    values, kind = diagonal(factors), typeof(pivots)
    places = iota(dtype=I32, shape=kind.shape, dim=kind.ndim - 1)
    return select(ne(pivots, places), neg(values), values)


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

# ---- signs and logarithms ---------------------------------------------------------------------


def _slogdet_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    check_square("slogdet", a)
    batch = a.shape[:-2]
    return ArrayType(batch, a.dtype), ArrayType(batch, real_of(a.dtype))


def _slogdet_lower(b: Builder, a: Value) -> list[Value]:
    return b.traced(_sign_and_size_by_lu, a)


def _sign_and_size_by_lu(a: Any) -> list[Any]:
    factors, pivots, _ = lu(a)
    return _sign_and_size(factors, pivots)


def _sign_and_size(factors: Any, pivots: Any) -> list[Any]:
    values, dims = _turned(factors, pivots), (typeof(pivots).ndim - 1,)
    return [reduce_prod(sign(values), dims=dims), reduce_sum(log(abs(values)), dims=dims)]


def _slogdet_linearize(active: Active, a: Any) -> Derivative:
    """d log det a is the trace of a⁻¹ da; what is imaginary of it turns the sign."""
    factors, pivots, permutation = lu(a)
    unit, size = _sign_and_size(factors, pivots)

    def linear(ta: Any) -> Any:
        change = diagonal(lu_solve(factors, permutation, ta))
        trace = reduce_sum(change, dims=(typeof(change).ndim - 1,))
        if typeof(size).dtype == typeof(unit).dtype:
            return ZERO, trace
        return mul(unit, complex(zeros_like(size), imag(trace))), real(trace)

    return (unit, size), linear


slogdet = factorization(
    "slogdet",
    _slogdet_type,
    _slogdet_lower,
    linearize=_slogdet_linearize,
    multi=True,
    operations=cubic(2 / 3),
    doc="the determinant over its absolute value, and the logarithm of that; LAPACK getrf",
    examples=[
        Example((f32(4, 4),), diagonal=1.5),
        Example((f32(2, 3, 3),), diagonal=1.5, order=1),
        Example((c64(3, 3),), diagonal=1.5, order=1),
    ],
)
