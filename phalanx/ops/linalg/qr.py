"""The QR decomposition, with and without exchanged columns, and products of reflections.

Reflection i is 1 - taus[i] v vᴴ, where v is 0 above row i, 1 there, and below it column i of ``a``.
"""

from __future__ import annotations

from typing import Any

from phalanx.base.errors import ShapeError
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    ZERO,
    Active,
    Derivative,
    Example,
    NoRule,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import I32, add, f32, mul, sub
from phalanx.ops.complex import c64
from phalanx.ops.linalg.algebra import (
    adjoint,
    lower_part,
    matmul,
    padded,
    take_columns,
)
from phalanx.ops.linalg.family import (
    by_lapack,
    check_matrices,
    identities,
    lapack,
    upper_triangle,
)
from phalanx.ops.linalg.triangular import triangular_solve
from phalanx.ops.shape import slice_dim

_OF_QR = NoRule("reflections are no smooth function of a matrix; differentiate qr instead")

# ---- reflections ----------------------------------------------------------------------------


def _geqrf_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    batch = check_matrices("geqrf", a)
    return ArrayType(a.shape, a.dtype), ArrayType((*batch, min(a.shape[-2:])), a.dtype)


def _reflections(b: Builder, a: Value) -> list[Value]:
    kind = b.type(a)
    outs = [(kind.shape[-2:], kind.dtype), ((min(kind.shape[-2:]),), kind.dtype)]
    return lapack(b, "geqrf", [a], outs, batch=kind.ndim - 2)


geqrf = by_lapack(
    "geqrf",
    _geqrf_type,
    _reflections,
    linearize=_OF_QR,
    multi=True,
    doc="r, below it reflections whose product is q, and their taus, of a = q r; LAPACK geqrf",
    examples=[Example((f32(4, 3),)), Example((f32(2, 2, 3),)), Example((c64(3, 3),))],
)


def _geqp3_type(a: ArrayType) -> tuple[ArrayType, ArrayType, ArrayType]:
    factors, taus = _geqrf_type(a)
    return factors, ArrayType((*a.shape[:-2], a.shape[-1]), I32), taus


def _pivoted_reflections(b: Builder, a: Value) -> list[Value]:
    kind = b.type(a)
    rows, columns = kind.shape[-2:]
    if not min(rows, columns):
        _, order, taus = b.outs
        return [a, b.iota(I32, order.shape, kind.ndim - 2), b.constant(0, taus.dtype, taus.shape)]
    free = b.constant(0, I32, (*kind.shape[:-2], columns))
    outs = [(kind.shape[-2:], kind.dtype), ((columns,), I32), ((min(rows, columns),), kind.dtype)]
    factors, order, taus = lapack(
        b, "geqp3", [a, free], outs, batch=kind.ndim - 2, in_place={0: 0, 1: 1}
    )
    return [factors, b.subtract(order, b.constant(1, I32, b.type(order).shape)), taus]


geqp3 = by_lapack(
    "geqp3",
    _geqp3_type,
    _pivoted_reflections,
    linearize=_OF_QR,
    multi=True,
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


def _product(b: Builder, a: Value, taus: Value) -> Value:
    kind = b.type(a)
    if not b.type(taus).shape[-1]:
        return identities(b, kind)
    return lapack(b, "orgqr", [a, taus], [(kind.shape[-2:], kind.dtype)], batch=kind.ndim - 2)[0]


householder_product = by_lapack(
    "householder_product",
    _product_type,
    _product,
    linearize=_OF_QR,
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


def _ormqr_lower(
    b: Builder, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool
) -> Value:
    if not b.type(taus).shape[-1]:
        return c
    kind, outs = b.type(c), [(b.type(c).shape[-2:], b.type(c).dtype)]
    return lapack(
        b,
        "ormqr",
        [a, taus, c],
        outs,
        batch=kind.ndim - 2,
        in_place={2: 0},
        left=left,
        transpose=transpose,
    )[0]


ormqr = by_lapack(
    "ormqr",
    _ormqr_type,
    _ormqr_lower,
    linearize=_OF_QR,
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
    kind = b.type(a)
    ndim, (rows, columns) = kind.ndim, kind.shape[-2:]
    if not min(rows, columns):
        q, r, *order = b.outs
        first = [b.iota(I32, t.shape, ndim - 2) for t in order]
        return [identities(b, q), identities(b, r), *first]
    factors, *order, taus = (_pivoted_reflections if pivoting else _reflections)(b, a)
    inner = rows if full else min(rows, columns)
    q = _product(b, _with_columns(b, factors, inner), taus)
    r = b.slice(factors, (0,) * ndim, (*kind.shape[:-2], min(inner, rows), columns), (1,) * ndim)
    return [q, upper_triangle(b, r), *order]


def _with_columns(b: Builder, x: Value, count: int) -> Value:
    """The first ``count`` columns; zeros for those that there are not."""
    kind = b.type(x)
    none = (0,) * kind.ndim
    more = (*none[1:], count - kind.shape[-1])
    return b.pad(x, b.constant(0, kind.dtype), none, more, none)


def _qr_linearize(active: Active, a: Any, *, full: bool, pivoting: bool) -> Derivative:
    """With m = qᴴ da r⁻¹ of the first columns: qᴴ dq is what of m lies below the diagonal, minus
    its adjoint, and dr = qᴴ da - qᴴ dq r; Walter and Lehmann 2010.

    Columns of a full q beyond those of ``a`` are free: they turn with the others, and no further.
    """
    q, r, *order = qr(a, full=full, pivoting=pivoting)
    rows, last = typeof(a).shape[-2], typeof(a).ndim - 1
    least = min(typeof(a).shape[-2:])
    size = typeof(q).shape[-1]
    first = slice_dim(slice_dim(r, 0, least, last), 0, least, last - 1)

    def linear(ta: Any) -> Any:
        if order:
            ta = take_columns(ta, order[0])
        scaled = slice_dim(ta, 0, least, last)
        scaled = triangular_solve(first, scaled, left=False, low=False, op="N", unit=False)
        inner = matmul(adjoint(q), scaled)
        below = padded(lower_part(inner, 1), (size, size))
        # r has a real diagonal, so what is imaginary of that of m turns q
        on = sub(padded(lower_part(inner), (size, size)), below)
        turn = add(sub(below, adjoint(below)), mul(sub(on, adjoint(on)), 0.5))
        tq = add(matmul(q, turn), padded(sub(scaled, matmul(q, inner)), (rows, size)))
        tr = sub(matmul(adjoint(q), ta), matmul(turn, r))
        return (tq, tr, *[ZERO for _ in order])

    return (q, r, *order), linear


qr = by_lapack(
    "qr",
    _qr_type,
    _qr_lower,
    linearize=_qr_linearize,
    multi=True,
    doc="q with orthonormal columns and a triangle r, of a = q r; LAPACK geqrf, orgqr",
    examples=[
        Example((f32(4, 3),), {"full": False, "pivoting": False}),
        Example((f32(2, 2, 3),), {"full": True, "pivoting": False}, order=1),
        Example((f32(3, 3),), {"full": True, "pivoting": True}, order=1),
        Example((c64(3, 3),), {"full": False, "pivoting": False}, order=1),
    ],
)
