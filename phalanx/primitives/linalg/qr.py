"""The QR decomposition, with and without exchanged columns, and products of reflections.

Reflection i is 1 - taus[i] v vᴴ, where v is 0 above row i, 1 there, and below it column i of ``a``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from phalanx.base.errors import ShapeError
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    ZERO,
    Active,
    Derivative,
    Example,
    NoRule,
)
from phalanx.core.types import ArrayType, Shape, typeof
from phalanx.primitives.basis import sub
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import I32, f32
from phalanx.primitives.linalg.algebra import (
    adjoint,
    identity_like,
    lower_half,
    matmul,
    padded,
    take_columns,
    upper,
)
from phalanx.primitives.linalg.family import (
    check_matrices,
    cubic,
    expanded,
    factorization,
    lapack,
    on_gpu,
)
from phalanx.primitives.linalg.reflections import pivoted, reflected
from phalanx.primitives.linalg.triangular import triangular_solve
from phalanx.primitives.shape import slice_dim

_OF_QR = NoRule("reflections are no smooth function of a matrix; differentiate qr instead")

# ---- reflections ----------------------------------------------------------------------------


def _geqrf_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    batch = check_matrices("geqrf", a)
    return ArrayType(a.shape, a.dtype), ArrayType((*batch, min(a.shape[-2:])), a.dtype)


def _geqrf_on_cpu(b: Builder, a: Value) -> list[Value]:
    return lapack(b, "geqrf", [a], _geqrf_results(b, a), batch=b.type(a).ndim - 2)


def _geqrf_on_gpu(b: Builder, a: Value) -> list[Value]:
    outs = _geqrf_results(b, a)
    return on_gpu(b, "cusolver_geqrf_ffi", [a], outs, batch=b.type(a).ndim - 2)


def _geqrf_on_tpu(b: Builder, a: Value) -> list[Value]:
    return expanded(b, "Qr", [a], _geqrf_results(b, a))


def _geqrf_results(b: Builder, a: Value) -> list[tuple[Shape, np.dtype]]:
    kind = b.type(a)
    return [(kind.shape[-2:], kind.dtype), ((min(kind.shape[-2:]),), kind.dtype)]


geqrf = factorization(
    "geqrf",
    _geqrf_type,
    lower_on={"cpu": _geqrf_on_cpu, "gpu": _geqrf_on_gpu, "tpu": _geqrf_on_tpu},
    linearize=_OF_QR,
    multi=True,
    operations=cubic(2),
    doc="r, below it reflections whose product is q, and their taus, of a = q r; LAPACK geqrf",
    examples=[Example((f32(4, 3),)), Example((f32(2, 2, 3),)), Example((c64(3, 3),))],
)


def _geqp3_type(a: ArrayType) -> tuple[ArrayType, ArrayType, ArrayType]:
    factors, taus = _geqrf_type(a)
    return factors, ArrayType((*a.shape[:-2], a.shape[-1]), I32), taus


def _geqp3_on_cpu(b: Builder, a: Value) -> list[Value]:
    return _geqp3(b, a, "geqp3", lapack)


def _geqp3_on_gpu(b: Builder, a: Value) -> list[Value]:
    """By LAPACK on the host; large ones by MAGMA, if it is installed."""
    return _geqp3(b, a, "cuhybrid_geqp3", on_gpu, magma="auto")


def _geqp3(
    b: Builder, a: Value, name: str, call: Callable[..., list[Value]], **options: str
) -> list[Value]:
    kind = b.type(a)
    rows, columns = kind.shape[-2:]
    if not min(rows, columns):
        return pivoted(b, a)
    free = b.constant(0, I32, (*kind.shape[:-2], columns))
    outs = [(kind.shape[-2:], kind.dtype), ((columns,), I32), ((min(rows, columns),), kind.dtype)]
    places = {0: 0, 1: 1}
    results = call(b, name, [a, free], outs, batch=kind.ndim - 2, in_place=places, **options)
    factors, order, taus = results
    return [factors, b.subtract(order, b.constant(1, I32, b.type(order).shape)), taus]


geqp3 = factorization(
    "geqp3",
    _geqp3_type,
    pivoted,
    lower_on={"cpu": _geqp3_on_cpu, "gpu": _geqp3_on_gpu},
    linearize=_OF_QR,
    multi=True,
    operations=cubic(2),
    doc="as geqrf of a[:, order], where the diagonal of r falls; order second; LAPACK geqp3",
    examples=[Example((f32(4, 3),)), Example((f32(2, 2, 3),)), Example((c64(3, 3),))],
)


def _check_reflections(who: str, a: ArrayType, taus: ArrayType) -> None:
    check_matrices(who, a)
    rows, columns = a.shape[-2:]
    batch = taus.dtype == a.dtype and taus.ndim and taus.shape[:-1] == a.shape[:-2]
    if not batch or taus.shape[-1] > min(rows, columns):
        raise ShapeError(
            f"{who}: of reflections a [..., m, n] the taus are [..., k], with k at most m and n, "
            f"of the same dtype, got a {a} and taus {taus}"
        )


def _product_type(a: ArrayType, taus: ArrayType) -> ArrayType:
    _check_reflections("householder_product", a, taus)
    if a.shape[-1] > a.shape[-2]:
        raise ShapeError(
            f"householder_product: there must be as many rows as columns, or more, got {a}"
        )
    return ArrayType(a.shape, a.dtype)


def _product_on_cpu(b: Builder, a: Value, taus: Value) -> Value:
    return _product(b, a, taus, "orgqr", lapack)


def _product_on_gpu(b: Builder, a: Value, taus: Value) -> Value:
    return _product(b, a, taus, "cusolver_orgqr_ffi", on_gpu)


def _product(
    b: Builder, a: Value, taus: Value, name: str, call: Callable[..., list[Value]]
) -> Value:
    kind = b.type(a)
    if not b.type(taus).shape[-1]:
        return b.traced(identity_like, a)
    return call(b, name, [a, taus], [(kind.shape[-2:], kind.dtype)], batch=kind.ndim - 2)[0]


def _product_on_tpu(b: Builder, a: Value, taus: Value) -> Value:
    """The function takes a reflection for each column; a column without a tau has none."""
    kind, taus_type = b.type(a), b.type(taus)
    if not taus_type.shape[-1]:
        return b.traced(identity_like, a)
    ends = (*(0 for _ in taus_type.shape[1:]), kind.shape[-1] - taus_type.shape[-1])
    none = (0,) * taus_type.ndim
    taus = b.pad(taus, b.constant(0, taus_type.dtype), none, ends, none)
    name = "ProductOfElementaryHouseholderReflectors"
    return expanded(b, name, [a, taus], [(kind.shape[-2:], kind.dtype)])[0]


householder_product = factorization(
    "householder_product",
    _product_type,
    lower_on={"cpu": _product_on_cpu, "gpu": _product_on_gpu, "tpu": _product_on_tpu},
    linearize=_OF_QR,
    operations=cubic(4 / 3),
    doc="the first n columns of the product of reflections a [..., m, n]; LAPACK orgqr",
    examples=[
        Example((f32(4, 3), f32(3))),
        Example((f32(2, 3, 3), f32(2, 2))),
        Example((c64(3, 2), c64(2))),
    ],
)


def _ormqr_type(
    a: ArrayType, taus: ArrayType, c: ArrayType, *, left: bool, transpose: bool
) -> ArrayType:
    _check_reflections("ormqr", a, taus)
    check_matrices("ormqr", a, c)
    if c.shape[-2 if left else -1] != a.shape[-2]:
        raise ShapeError(
            f"ormqr: c must have as many {'rows' if left else 'columns'} as the reflections, "
            f"{a.shape[-2]}, got a {a} and c {c}"
        )
    return ArrayType(c.shape, c.dtype)


def _ormqr(b: Builder, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    return b.traced(partial(reflected, left=left, transpose=transpose), a, taus, c)


def _ormqr_on_cpu(
    b: Builder, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool
) -> Value:
    return _multiplied(b, (a, taus, c), "ormqr", lapack, left=left, transpose=transpose)


def _ormqr_on_gpu(
    b: Builder, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool
) -> Value:
    name = "cusolver_ormqr_ffi"
    return _multiplied(b, (a, taus, c), name, on_gpu, left=left, transpose=transpose)


def _multiplied(
    b: Builder,
    args: tuple[Value, Value, Value],
    name: str,
    call: Callable[..., list[Value]],
    **how: bool,
) -> Value:
    _, taus, c = args
    if not b.type(taus).shape[-1]:
        return c
    kind, outs = b.type(c), [(b.type(c).shape[-2:], b.type(c).dtype)]
    return call(b, name, args, outs, batch=kind.ndim - 2, in_place={2: 0}, **how)[0]


ormqr = factorization(
    "ormqr",
    _ormqr_type,
    _ormqr,
    lower_on={"cpu": _ormqr_on_cpu, "gpu": _ormqr_on_gpu},
    linearize=_OF_QR,
    operations=cubic(4),
    doc="q c or c q, or with qᴴ, q the product of reflections, a square matrix; LAPACK ormqr",
    examples=[
        Example((f32(4, 2), f32(2), f32(4, 3)), {"left": True, "transpose": False}),
        Example((f32(2, 3, 3), f32(2, 3), f32(2, 2, 3)), {"left": False, "transpose": True}),
        Example((c64(3, 2), c64(2), c64(3, 1)), {"left": True, "transpose": True}),
    ],
)

# ---- the decomposition ----------------------------------------------------------------------


def _qr_type(a: ArrayType, *, full: bool, pivoting: bool) -> tuple[ArrayType, ...]:
    batch = check_matrices("qr", a)
    rows, columns = a.shape[-2:]
    inner = rows if full else min(rows, columns)
    q, r = ArrayType((*batch, rows, inner), a.dtype), ArrayType((*batch, inner, columns), a.dtype)
    return (q, r, ArrayType((*batch, columns), I32)) if pivoting else (q, r)


def _qr_lower(b: Builder, a: Value, *, full: bool, pivoting: bool) -> list[Value]:
    return b.traced(partial(_by_reflections, full=full, pivoting=pivoting), a)


def _by_reflections(a: Any, *, full: bool, pivoting: bool) -> list[Any]:
    rows, columns = typeof(a).shape[-2:]
    factors, *order, taus = (geqp3 if pivoting else geqrf)(a)
    inner = rows if full else min(rows, columns)
    q = householder_product(padded(factors, (rows, inner)), taus)
    return [q, upper(slice_dim(factors, 0, inner, typeof(a).ndim - 2)), *order]


def _qr_linearize(active: Active, a: Any, *, full: bool, pivoting: bool) -> Derivative:
    """With m = qᴴ da r⁻¹ of the first columns: qᴴ dq is what of m lies below the diagonal, minus
    its adjoint, and dr = qᴴ da - qᴴ dq r, which is (m - qᴴ dq) r where m has all columns; Walter
    and Lehmann 2010.

    Columns of a full q beyond those of ``a`` are free: they turn with the others, and no further.
    """
    q, r, *order = qr(a, full=full, pivoting=pivoting)
    (rows, columns), last = typeof(a).shape[-2:], typeof(a).ndim - 1
    least = min(rows, columns)
    size = typeof(q).shape[-1]
    first = slice_dim(slice_dim(r, 0, least, last), 0, least, last - 1)

    def linear(ta: Any) -> Any:
        if order:
            ta = take_columns(ta, order[0])
        scaled = slice_dim(ta, 0, least, last)
        scaled = triangular_solve(first, scaled, left=False, low=False, op="N", unit=False)
        inner = matmul(adjoint(q), scaled)
        # r has a real diagonal, so what is imaginary of that of m turns q
        half = padded(lower_half(inner), (size, size))
        turn = sub(half, adjoint(half))
        rest = sub(padded(inner, (size, size)), turn)
        tq = sub(padded(scaled, (rows, size)), matmul(q, rest))
        wide = least < columns
        tr = sub(matmul(adjoint(q), ta), matmul(turn, r)) if wide else matmul(rest, r)
        return (tq, tr, *[ZERO for _ in order])

    return (q, r, *order), linear


qr = factorization(
    "qr",
    _qr_type,
    _qr_lower,
    linearize=_qr_linearize,
    multi=True,
    operations=cubic(4),
    doc="q with orthonormal columns and a triangle r, of a = q r; LAPACK geqrf, orgqr",
    examples=[
        Example((f32(4, 3),), {"full": False, "pivoting": False}),
        Example((f32(2, 2, 3),), {"full": True, "pivoting": False}, order=1),
        Example((f32(3, 3),), {"full": True, "pivoting": True}, order=1),
        Example((c64(3, 3),), {"full": False, "pivoting": False}, order=1),
    ],
)
