"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from typing import Any

from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Active, Derivative, Example
from phalanx.core.types import ArrayType
from phalanx.ops.basis import f32, mul
from phalanx.ops.complex import c64
from phalanx.ops.linalg.algebra import (
    adjoint,
    complex_as,
    diagonal,
    matmul,
    of_lower_triangle,
    real_part,
    reciprocal_differences,
)
from phalanx.ops.linalg.family import (
    INFO,
    by_lapack,
    check_square,
    lapack,
    real_of,
    where_done,
)


def _type(a: ArrayType, *, vectors: bool) -> tuple[ArrayType, ...]:
    check_square("eigh", a)
    values = ArrayType(a.shape[:-1], real_of(a.dtype))
    return (ArrayType(a.shape, a.dtype), values) if vectors else (values,)


def _lower(b: Builder, a: Value, *, vectors: bool) -> list[Value]:
    kind = b.type(a)
    outs = [(kind.shape[-2:], kind.dtype), (kind.shape[-1:], real_of(kind.dtype)), INFO]
    mode = "V" if vectors else "N"
    v, w, info = lapack(b, "syevd", [a], outs, batch=kind.ndim - 2, mode=mode, uplo="L")
    return where_done(b, info, *([v, w] if vectors else [w]))


def _linearize(active: Active, a: Any, *, vectors: bool) -> Derivative:
    """With d = vᴴ da v: dw is its diagonal, and vᴴ dv is d over the differences of eigenvalues;
    Giles 2008.
    """
    v, w = eigh(a, vectors=True)

    def turned(ta: Any) -> Any:
        return matmul(matmul(adjoint(v), of_lower_triangle(ta)), v)

    if not vectors:
        return (w,), lambda ta: (real_part(diagonal(turned(ta))),)
    gaps = complex_as(reciprocal_differences(w), a)

    def linear(ta: Any) -> Any:
        inner = turned(ta)
        return matmul(v, mul(gaps, inner)), real_part(diagonal(inner))

    return (v, w), linear


eigh = by_lapack(
    "eigh",
    _type,
    _lower,
    linearize=_linearize,
    multi=True,
    doc="v and w ascending of a v = v diag(w), a given by its lower triangle; LAPACK syevd",
    examples=[
        Example((f32(3, 3),), {"vectors": True}),
        Example((f32(2, 3, 3),), {"vectors": True}, order=1),
        Example((c64(3, 3),), {"vectors": False}, order=1),
    ],
)
