"""The singular value decomposition, and the pseudo-inverse that is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import MissingRule, ShapeError
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import ZERO, Active, Derivative, Example
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import add, f32, mul, sub
from phalanx.ops.complex import c64
from phalanx.ops.linalg.algebra import (
    adjoint,
    complex_as,
    diagonal,
    diagonal_matrix,
    divided_columns,
    matmul,
    real_part,
    reciprocal_differences,
    times_columns,
)
from phalanx.ops.linalg.family import (
    INFO,
    by_lapack,
    check_matrices,
    identities,
    lapack,
    real_of,
    where_done,
)

_DEFAULT = "gesdd"  # of LAPACK, by divide and conquer; gesvd iterates

# ---- the decomposition ----------------------------------------------------------------------


def _svd_type(
    a: ArrayType, *, full: bool, vectors: bool, routine: str = _DEFAULT
) -> tuple[ArrayType, ...]:
    batch = check_matrices("svd", a)
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    values = ArrayType((*batch, least), real_of(a.dtype))
    if not vectors:
        return (values,)
    left = ArrayType((*batch, rows, rows if full else least), a.dtype)
    return left, values, ArrayType((*batch, columns if full else least, columns), a.dtype)


def _svd_lower(
    b: Builder, a: Value, *, full: bool, vectors: bool, routine: str = _DEFAULT
) -> list[Value]:
    ndim = b.type(a).ndim
    if not min(b.type(a).shape[-2:]):
        return [identities(b, t) if t.ndim == ndim else b.constant(0, t.dtype, t.shape)
                for t in b.outs]
    u, s, vh = _decompose(b, a, ("A" if full else "S") if vectors else "N", routine)
    return [u, s, vh] if vectors else [s]


def _decompose(b: Builder, a: Value, mode: str, routine: str) -> list[Value]:
    """u, s and vᴴ: square ("A"), with as many vectors as values ("S"), or without meaning ("N")."""
    kind = b.type(a)
    rows, columns = kind.shape[-2:]
    least = min(rows, columns)
    outs = [
        ((rows, columns), kind.dtype),
        ((least,), real_of(kind.dtype)),
        ((rows, least if mode == "S" else rows), kind.dtype),
        ((least if mode == "S" else columns, columns), kind.dtype),
        INFO,
    ]
    _, s, u, vh, info = lapack(b, routine, [a], outs, batch=kind.ndim - 2, mode=mode)
    return where_done(b, info, u, s, vh)


def _svd_linearize(
    active: Active, a: Any, *, full: bool, vectors: bool, routine: str = _DEFAULT
) -> Derivative:
    """With d = uᴴ da v: ds is the real part of its diagonal, and uᴴ du, vᴴ dv are quotients of d
    by differences of squares of singular values; Townsend 2016.
    """
    rows, columns = typeof(a).shape[-2:]
    if vectors and full and rows != columns:
        raise MissingRule(
            f"svd: the singular vectors beyond those of the reduced decomposition of {typeof(a)} "
            "are not determined, so they have no derivative; give full_matrices=False"
        )
    u, s, vh = svd(a, full=False, vectors=True, routine=routine)
    v = adjoint(vh)

    def turned(ta: Any) -> Any:
        return matmul(matmul(adjoint(u), ta), v)

    if not vectors:
        return (s,), lambda ta: (real_part(diagonal(turned(ta))),)
    gaps = complex_as(reciprocal_differences(mul(s, s)), a)

    def linear(ta: Any) -> Any:
        inner = turned(ta)
        right, left = times_columns(inner, s), times_columns(adjoint(inner), s)
        # the phases of u and v are free together; all of their change is given to u
        skew = mul(diagonal_matrix(diagonal(sub(inner, adjoint(inner)))), 0.5)
        du = matmul(u, add(mul(gaps, add(right, adjoint(right))), divided_columns(skew, s)))
        dv = matmul(v, mul(gaps, add(left, adjoint(left))))
        if rows > columns:
            beyond = matmul(ta, v)
            du = add(du, divided_columns(sub(beyond, matmul(u, inner)), s))
        if columns > rows:
            beyond = matmul(adjoint(ta), u)
            dv = add(dv, divided_columns(sub(beyond, matmul(v, adjoint(inner))), s))
        return du, real_part(diagonal(inner)), adjoint(dv)

    return (u, s, vh), linear


svd = by_lapack(
    "svd",
    _svd_type,
    _svd_lower,
    linearize=_svd_linearize,
    multi=True,
    doc="u, s descending, vᴴ of a = u diag(s) vᴴ; or s alone; LAPACK gesdd or gesvd",
    examples=[
        Example((f32(4, 3),), {"full": False, "vectors": True}),
        Example((f32(2, 2, 3),), {"full": False, "vectors": True}, order=1),
        Example((f32(3, 3),), {"full": True, "vectors": True}, order=1),
        Example((c64(3, 2),), {"full": False, "vectors": False}, order=1),
    ],
)

# ---- the pseudo-inverse ---------------------------------------------------------------------


def _pinv_type(a: ArrayType, tolerance: ArrayType) -> ArrayType:
    batch = check_matrices("pinv", a)
    if tolerance.shape != batch or tolerance.dtype != real_of(a.dtype):
        raise ShapeError(
            f"pinv: one tolerance is needed for each matrix of a {a}, real and of the same "
            f"precision, got {tolerance}"
        )
    return ArrayType((*batch, a.shape[-1], a.shape[-2]), a.dtype)


def _pinv_lower(b: Builder, a: Value, tolerance: Value) -> Value:
    kind = b.type(a)
    ndim, batch = kind.ndim, tuple(range(kind.ndim - 2))
    u, s, vh = _decompose(b, a, "S", _DEFAULT)
    values = b.type(s)
    one, zero = (b.constant(x, values.dtype, values.shape) for x in (1, 0))
    largest = b.slice(s, (0,) * (ndim - 1), (*kind.shape[:-2], 1), (1,) * (ndim - 1))
    bound = b.multiply(b.reshape(largest, kind.shape[:-2]), tolerance)
    bound = b.broadcast_in_dim(bound, values.shape, batch)
    inverse = b.select(b.compare(s, bound, "LE"), zero, b.divide(one, s))
    inverse = b.convert(inverse, kind.dtype)
    scaled = b.multiply(u, b.broadcast_in_dim(inverse, b.type(u).shape, (*batch, ndim - 1)))
    contract = (ndim - 2,), (ndim - 1,)
    product = b.dot_general(vh, scaled, contract, (batch, batch), kind.dtype, None)
    return b.conj(product) if dtypes.is_complex(kind.dtype) else product


def _pinv_linearize(active: Active, a: Any, tolerance: Any) -> Derivative:
    """The derivative while the rank stays; Golub and Pereyra 1973."""
    inverse = pinv(a, tolerance)
    if not active[0]:
        return inverse, lambda ta, tt: ZERO
    outer, inner = matmul(inverse, adjoint(inverse)), matmul(adjoint(inverse), inverse)

    def linear(ta: Any, tt: Any) -> Any:
        if ta is ZERO:
            return ZERO
        th = adjoint(ta)
        left, right = matmul(outer, th), matmul(th, inner)
        left = sub(left, matmul(matmul(left, a), inverse))
        right = sub(right, matmul(inverse, matmul(a, right)))
        return add(sub(left, matmul(matmul(inverse, ta), inverse)), right)

    return inverse, linear


pinv = by_lapack(
    "pinv",
    _pinv_type,
    _pinv_lower,
    linearize=_pinv_linearize,
    doc="v diag(1 / s) uᴴ without those s that are at most tolerance times the first; LAPACK gesdd",
    examples=[
        Example((f32(4, 3), np.float32(0.01))),
        Example((f32(3, 4), np.float32(0.01)), order=1),
        Example((c64(3, 2), np.float32(0.01)), order=1),
    ],
)
