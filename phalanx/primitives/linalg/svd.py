"""The singular value decomposition, and the pseudo-inverse that is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base.errors import MissingRule, ShapeError
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import ZERO, Active, Derivative, Example
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, broadcast, mul, sub
from phalanx.primitives.compare import le, select
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import f32
from phalanx.primitives.elementwise import div
from phalanx.primitives.linalg.algebra import (
    adjoint,
    complex_as,
    diagonal,
    diagonal_matrix,
    divided_columns,
    identity_like,
    matmul,
    real_part,
    reciprocal_differences,
    times_columns,
)
from phalanx.primitives.linalg.family import (
    INFO,
    check_matrices,
    cubic,
    factorization,
    lapack,
    on_gpu,
    real_of,
    where_done,
)
from phalanx.primitives.linalg.polar import svd_by_polar
from phalanx.primitives.reduce import reduce_max
from phalanx.primitives.shape import slice_dim

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


def _on_cpu(
    b: Builder, a: Value, *, full: bool, vectors: bool, routine: str = _DEFAULT
) -> list[Value]:
    if not min(b.type(a).shape[-2:]):
        return _of_nothing(b, a, full, vectors)
    mode = ("A" if full else "S") if vectors else "N"
    kind = b.type(a)
    sizes = [min(kind.shape[-2:])] * 2 if mode == "S" else kind.shape[-2:]
    outs = _results(kind, *sizes)
    _, s, u, vh, info = lapack(b, routine, [a], outs, batch=kind.ndim - 2, mode=mode)
    return where_done(b, info, *([u, s, vh] if vectors else [s]))


def _results(kind: ArrayType, left: int, right: int) -> list[Any]:
    """What a routine gives: a copy of the matrix, the values, ``left`` columns of u, ``right``
    rows of vᴴ, and how it ended."""
    rows, columns = kind.shape[-2:]
    return [
        ((rows, columns), kind.dtype),
        ((min(rows, columns),), real_of(kind.dtype)),
        ((rows, left), kind.dtype),
        ((right, columns), kind.dtype),
        INFO,
    ]


def _of_nothing(b: Builder, a: Value, full: bool, vectors: bool) -> list[Value]:
    """The results for matrices without elements: any orthonormal vectors will do."""
    u, *others = _svd_type(b.type(a), full=full, vectors=vectors)
    if not vectors:
        return [b.constant(0, u.dtype, u.shape)]
    s, vh = others
    square = [b.traced(identity_like, b.constant(0, t.dtype, t.shape)) for t in (u, vh)]
    return [square[0], b.constant(0, s.dtype, s.shape), square[1]]


_BY_ROTATIONS = 1024  # rows and columns up to which rotations are the faster way on GPUs


def _on_gpu(
    b: Builder, a: Value, *, full: bool, vectors: bool, routine: str = _DEFAULT
) -> list[Value]:
    shape = b.type(a).shape[-2:]
    if not min(shape):
        return _of_nothing(b, a, full, vectors)
    small = routine == _DEFAULT and max(shape) <= _BY_ROTATIONS
    return (_by_rotations if small else _by_iteration)(b, a, full, vectors)


def _by_rotations(b: Builder, a: Value, full: bool, vectors: bool) -> list[Value]:
    """By Jacobi's rotations; the function gives square matrices of vectors, and v itself."""
    kind = b.type(a)
    rows, columns = kind.shape[-2:]
    outs = _results(kind, rows, columns)
    name, batch = "cusolver_gesvdj_ffi", kind.ndim - 2
    results = on_gpu(b, name, [a], outs, batch=batch, full_matrices=True, compute_uv=vectors)
    _, s, u, v, info = results
    if not vectors:
        return where_done(b, info, s)

    def factors(u: Any, v: Any) -> list[Any]:
        ends = (rows, columns) if full else [min(rows, columns)] * 2
        u, v = (slice_dim(x, 0, n, kind.ndim - 1) for x, n in zip((u, v), ends, strict=True))
        return [u, adjoint(v)]

    u, vh = b.traced(factors, u, v)
    return where_done(b, info, u, s, vh)


def _by_iteration(b: Builder, a: Value, full: bool, vectors: bool) -> list[Value]:
    """By QR iteration; the function takes matrices with at least as many rows as columns."""
    kind = b.type(a)
    rows, columns = kind.shape[-2:]
    if rows < columns:
        out = _by_iteration(b, b.traced(adjoint, a), full, vectors)
        return [b.traced(adjoint, out[2]), out[1], b.traced(adjoint, out[0])] if vectors else out
    outs = _results(kind, rows if full else columns, columns)
    _, s, u, vh, info = on_gpu(
        b,
        "cusolver_gesvd_ffi",
        [a],
        outs,
        batch=kind.ndim - 2,
        full_matrices=full,
        compute_uv=vectors,
        transposed=False,
    )
    return where_done(b, info, *([u, s, vh] if vectors else [s]))


def _on_tpu(
    b: Builder, a: Value, *, full: bool, vectors: bool, routine: str = _DEFAULT
) -> list[Value]:
    if not min(b.type(a).shape[-2:]):
        return _of_nothing(b, a, full, vectors)
    return svd_by_polar(b, a, full=full, vectors=vectors)


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


svd = factorization(
    "svd",
    _svd_type,
    lower_on={"cpu": _on_cpu, "gpu": _on_gpu, "tpu": _on_tpu},
    linearize=_svd_linearize,
    multi=True,
    operations=cubic(20),
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
    return b.traced(_inverted, a, tolerance)


def _inverted(a: Any, tolerance: Any) -> Any:
    u, s, vh = svd(a, full=False, vectors=True)
    last = typeof(s).ndim - 1
    bound = mul(reduce_max(s, dims=(last,)), tolerance)
    bound = broadcast(bound, shape=typeof(s).shape, dims=tuple(range(last)))
    inverse = select(le(s, bound), 0, div(1, s))
    return matmul(adjoint(vh), adjoint(times_columns(u, inverse)))


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


pinv = factorization(
    "pinv",
    _pinv_type,
    _pinv_lower,
    linearize=_pinv_linearize,
    operations=cubic(22),
    doc="v diag(1 / s) uᴴ without those s that are at most tolerance times the first; LAPACK gesdd",
    examples=[
        Example((f32(4, 3), np.float32(0.01))),
        Example((f32(3, 4), np.float32(0.01)), order=1),
        Example((c64(3, 2), np.float32(0.01)), order=1),
    ],
)
