"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Active, Derivative, Example
from phalanx.core.types import ArrayType, Shape
from phalanx.primitives.basis import mul
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import f32
from phalanx.primitives.linalg import division
from phalanx.primitives.linalg.algebra import (
    adjoint,
    complex_as,
    diagonal,
    matmul,
    of_lower_triangle,
    real_part,
    reciprocal_differences,
)
from phalanx.primitives.linalg.family import (
    INFO,
    check_square,
    cubic,
    expanded,
    factorization,
    lapack,
    on_gpu,
    real_of,
    where_done,
)


def _type(a: ArrayType, *, vectors: bool) -> tuple[ArrayType, ...]:
    check_square("eigh", a)
    values = ArrayType(a.shape[:-1], real_of(a.dtype))
    return (ArrayType(a.shape, a.dtype), values) if vectors else (values,)


def _on_cpu(b: Builder, a: Value, *, vectors: bool) -> list[Value]:
    outs, batch = [*_results(b, a), INFO], b.type(a).ndim - 2
    mode = "V" if vectors else "N"
    v, w, info = lapack(b, "syevd", [a], outs, batch=batch, mode=mode, uplo="L")
    return where_done(b, info, *([v, w] if vectors else [w]))


def _on_gpu(b: Builder, a: Value, *, vectors: bool) -> list[Value]:
    outs, batch = [*_results(b, a), INFO], b.type(a).ndim - 2
    by_size = np.uint8(0)  # cuSOLVER's own choice: small matrices by Jacobi's rotations
    name = "cusolver_syevd_ffi"
    v, w, info = on_gpu(b, name, [a], outs, batch=batch, lower=True, algorithm=by_size)
    return where_done(b, info, *([v, w] if vectors else [w]))


def _on_tpu(b: Builder, a: Value, *, vectors: bool) -> list[Value]:
    """By Jacobi's rotations; of 64 bits the vectors have about half of the digits.

    Those turn all of a matrix once for every row, which is slow where it does not stay on the chip.
    """
    if b.type(a).shape[-1] > division.SMALL:
        return division.eigh_by_division(b, a, eigh, vectors=vectors)
    small = {4: "1e-6", 8: "1e-14"}[real_of(b.type(a).dtype).itemsize]
    options = f"1,1,100,{small}"  # the lower triangle, ascending, at most 100 sweeps
    v, w = expanded(b, "Eigh", [a], _results(b, a), options)
    return [v, w] if vectors else [w]


def _results(b: Builder, a: Value) -> list[tuple[Shape, np.dtype]]:
    kind = b.type(a)
    return [(kind.shape[-2:], kind.dtype), (kind.shape[-1:], real_of(kind.dtype))]


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


eigh = factorization(
    "eigh",
    _type,
    lower_on={"cpu": _on_cpu, "gpu": _on_gpu, "tpu": _on_tpu},
    linearize=_linearize,
    multi=True,
    operations=cubic(9),
    doc="v and w ascending of a v = v diag(w), a given by its lower triangle; LAPACK syevd",
    examples=[
        Example((f32(3, 3),), {"vectors": True}),
        Example((f32(2, 3, 3),), {"vectors": True}, order=1),
        Example((c64(3, 3),), {"vectors": False}, order=1),
    ],
)
