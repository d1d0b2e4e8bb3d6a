"""Schur, Hessenberg and tridiagonal forms: a = q t qᴴ with orthonormal q."""

from __future__ import annotations

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Example, NoRule
from phalanx.core.types import ArrayType, Shape
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import I32, f32
from phalanx.primitives.linalg.family import (
    INFO,
    check_square,
    cubic,
    factorization,
    lapack,
    on_gpu,
    real_of,
    where_done,
)

# ---- schur ----------------------------------------------------------------------------------


def _schur_type(a: ArrayType, *, vectors: bool) -> tuple[ArrayType, ...]:
    check_square("schur", a)
    return (ArrayType(a.shape, a.dtype),) * (2 if vectors else 1)


def _schur_lower(b: Builder, a: Value, *, vectors: bool) -> list[Value]:
    kind = b.type(a)
    matrix, values = (kind.shape[-2:], kind.dtype), (kind.shape[-1:], kind.dtype)
    parts = 1 if dtypes.is_complex(kind.dtype) else 2
    t, q, *_, info = lapack(
        b,
        "gees",
        [a],
        [matrix, matrix, *[values] * parts, ((), I32), INFO],
        batch=kind.ndim - 2,
        mode="V" if vectors else "N",
        sort="N",
    )
    return where_done(b, info, *([t, q] if vectors else [t]))


schur = factorization(
    "schur",
    _schur_type,
    lower_on={"cpu": _schur_lower},
    linearize=NoRule("the Schur form has no derivative here; that of eigenvalues is that of eig"),
    multi=True,
    operations=cubic(25),
    doc="t, a triangle but for 2x2 blocks if real, and q, of a = q t qᴴ; LAPACK gees",
    examples=[
        Example((f32(3, 3),), {"vectors": True}),
        Example((f32(2, 3, 3),), {"vectors": False}),
        Example((c64(3, 3),), {"vectors": True}),
    ],
)

# ---- hessenberg -----------------------------------------------------------------------------

_REFLECTIONS = NoRule("reflections are no smooth function of a matrix")


def _hessenberg_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    check_square("hessenberg", a)
    return ArrayType(a.shape, a.dtype), ArrayType(_one_less(a), a.dtype)


def _one_less(a: ArrayType) -> tuple[int, ...]:
    return (*a.shape[:-2], max(a.shape[-1] - 1, 0))


def _hessenberg_lower(b: Builder, a: Value) -> list[Value]:
    kind = b.type(a)
    n = kind.shape[-1]
    outs = [(kind.shape[-2:], kind.dtype), ((max(n - 1, 0),), kind.dtype), INFO]
    low, high = np.int32(1), np.int32(n)
    h, taus, info = lapack(b, "gehrd", [a], outs, batch=kind.ndim - 2, low=low, high=high)
    return where_done(b, info, h, taus)


hessenberg = factorization(
    "hessenberg",
    _hessenberg_type,
    lower_on={"cpu": _hessenberg_lower},
    linearize=_REFLECTIONS,
    multi=True,
    operations=cubic(10 / 3),
    doc="h, zero below its first subdiagonal, where reflections stand; their taus; LAPACK gehrd",
    examples=[Example((f32(3, 3),)), Example((f32(2, 4, 4),)), Example((c64(3, 3),))],
)

# ---- tridiagonal ----------------------------------------------------------------------------


def _tridiagonal_type(a: ArrayType, *, low: bool) -> tuple[ArrayType, ...]:
    check_square("tridiagonal", a)
    real = real_of(a.dtype)
    return (
        ArrayType(a.shape, a.dtype),
        ArrayType(a.shape[:-1], real),
        ArrayType(_one_less(a), real),
        ArrayType(_one_less(a), a.dtype),
    )


def _tridiagonal_on_cpu(b: Builder, a: Value, *, low: bool) -> list[Value]:
    outs, batch, uplo = _tridiagonal_results(b, a), b.type(a).ndim - 2, "L" if low else "U"
    *results, info = lapack(b, "sytrd", [a], outs, batch=batch, uplo=uplo)
    return where_done(b, info, *results)


def _tridiagonal_on_gpu(b: Builder, a: Value, *, low: bool) -> list[Value]:
    outs, batch = _tridiagonal_results(b, a), b.type(a).ndim - 2
    *results, info = on_gpu(b, "cusolver_sytrd_ffi", [a], outs, batch=batch, lower=low)
    return where_done(b, info, *results)


def _tridiagonal_results(b: Builder, a: Value) -> list[tuple[Shape, np.dtype]]:
    kind = b.type(a)
    (n,), real = kind.shape[-1:], real_of(kind.dtype)
    return [((n, n), kind.dtype), ((n,), real), ((n - 1,), real), ((n - 1,), kind.dtype), INFO]


tridiagonal = factorization(
    "tridiagonal",
    _tridiagonal_type,
    lower_on={"cpu": _tridiagonal_on_cpu, "gpu": _tridiagonal_on_gpu},
    linearize=_REFLECTIONS,
    multi=True,
    operations=cubic(4 / 3),
    doc="reflections beside the diagonals, the diagonal, the one beside it, taus; LAPACK sytrd",
    examples=[
        Example((f32(3, 3),), {"low": True}),
        Example((f32(2, 3, 3),), {"low": False}),
        Example((c64(3, 3),), {"low": True}),
    ],
)
