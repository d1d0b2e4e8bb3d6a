"""The LU decomposition with row exchanges, and what is made of it: solutions, determinants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import alike_but
from phalanx.core.primitive import (
    ZERO,
    Active,
    Cotangents,
    Derivative,
    Elements,
    Example,
    Linear,
    Primitive,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, add_tangents, neg
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import I32, check_domain, f32, i32
from phalanx.primitives.linalg.algebra import (
    identity_rows,
    inverse_permutation,
    lower_part,
    matmul,
    matrix_transposed,
    on_diagonal,
    padded,
    take_rows,
    upper,
)
from phalanx.primitives.linalg.family import (
    INFO,
    NOT_LINEAR,
    batch_in_front,
    check_matrices,
    check_square,
    cubic,
    expanded,
    factorization,
    lapack,
    on_gpu,
    solving,
)
from phalanx.primitives.linalg.triangular import triangular_solve
from phalanx.primitives.shape import concatenate, slice_dim

# ---- exchanges of rows ----------------------------------------------------------------------


def _permutation_type(pivots: ArrayType, *, size: int) -> ArrayType:
    check_domain("lu_pivots_to_permutation", pivots, dtypes.is_integer)
    if pivots.dtype != I32 or not pivots.ndim or not 0 <= pivots.shape[-1] <= size:
        raise ValueError(
            f"lu_pivots_to_permutation: int32 pivots [..., k] are needed, with k at most "
            f"{size}, got {pivots}"
        )
    return ArrayType((*pivots.shape[:-1], size), I32)


def permutation_of(b: Builder, pivots: Value, size: int) -> Value:
    """The order of rows after row i was exchanged with row ``pivots[..., i]``, one i at a time."""
    kind = b.type(pivots)
    shape, last = (*kind.shape[:-1], size), kind.ndim - 1
    count = kind.shape[-1]
    order = b.iota(I32, shape, last)
    if not count:
        return order
    places = b.iota(I32, shape, last)
    batch = tuple(range(last))

    def column(b: Builder, i: Value) -> Value:
        zero = b.constant(0, I32)
        one = b.dynamic_slice(pivots, [*[zero] * last, i], (*kind.shape[:-1], 1))
        return b.broadcast_in_dim(b.reshape(one, kind.shape[:-1]), shape, batch)

    def at(b: Builder, order: Value, chosen: Value) -> Value:
        masked = b.select(chosen, order, b.constant(0, I32, shape))
        total = b.reduce([masked], [b.constant(0, I32)], (last,), lambda b, x, y: [b.add(x, y)])
        return b.broadcast_in_dim(total[0], shape, batch)

    def exchange(b: Builder, i: Value, order: Value) -> list[Value]:
        at_i = b.compare(places, b.broadcast_in_dim(i, shape, ()), "EQ")
        at_pivot = b.compare(places, column(b, i), "EQ")
        mine, other = at(b, order, at_i), at(b, order, at_pivot)
        order = b.select(at_i, other, b.select(at_pivot, mine, order))
        return [b.add(i, b.constant(1, I32)), order]

    return b.while_(
        [b.constant(0, I32), order],
        lambda b, i, order: b.compare(i, b.constant(count, I32), "LT"),
        exchange,
    )[1]


def _permutation_on_gpu(b: Builder, pivots: Value, size: int) -> Value:
    kind = b.type(pivots)
    if not kind.size:
        return permutation_of(b, pivots, size)
    name = "cu_lu_pivots_to_permutation"
    return on_gpu(b, name, [pivots], [((size,), I32)], batch=kind.ndim - 1, in_place={})[0]


lu_pivots_to_permutation = Primitive(
    "lu_pivots_to_permutation",
    _permutation_type,
    permutation_of,
    lower_on={"gpu": _permutation_on_gpu},
    linearize=ZeroDerivative("rows are counted by integers"),
    transpose=NOT_LINEAR,
    batch=batch_in_front(lambda: lu_pivots_to_permutation),
    dims=alike_but("rows are exchanged one after the other"),
    elements=Elements(operations=10),
    doc="the order of rows after row i was exchanged with row pivots[i], for each i in turn",
    examples=[Example((i32(2, 3),), {"size": 4}, low=0, high=3)],
)

# ---- the decomposition ----------------------------------------------------------------------


def _lu_type(a: ArrayType) -> tuple[ArrayType, ArrayType, ArrayType]:
    batch = check_matrices("lu", a)
    rows, columns = a.shape[-2:]
    return (
        ArrayType(a.shape, a.dtype),
        ArrayType((*batch, min(rows, columns)), I32),
        ArrayType((*batch, rows), I32),
    )


def _lu_on_cpu(b: Builder, a: Value) -> list[Value]:
    factors, pivots = _factors(b, a, "getrf", lapack)
    return [factors, pivots, permutation_of(b, pivots, b.type(a).shape[-2])]


def _lu_on_gpu(b: Builder, a: Value) -> list[Value]:
    factors, pivots = _factors(b, a, "cusolver_getrf_ffi", on_gpu)
    return [factors, pivots, _permutation_on_gpu(b, pivots, b.type(a).shape[-2])]


def _factors(b: Builder, a: Value, name: str, call: Callable[..., list[Value]]) -> list[Value]:
    """The packed factors, and the pivots.

    ``info`` says where a pivot is zero: that is no failure, the factors say so, too.
    """
    kind = b.type(a)
    least = min(kind.shape[-2:])
    if not least:
        return [a, b.constant(0, I32, (*kind.shape[:-2], 0))]
    outs = [(kind.shape[-2:], kind.dtype), ((least,), I32), INFO]
    factors, pivots, _ = call(b, name, [a], outs, batch=kind.ndim - 2)
    return [factors, b.subtract(pivots, b.constant(1, I32, b.type(pivots).shape))]


def _lu_on_tpu(b: Builder, a: Value) -> list[Value]:
    kind = b.type(a)
    rows, least = kind.shape[-2], min(kind.shape[-2:])
    if not least:
        pivots = b.constant(0, I32, (*kind.shape[:-2], 0))
        return [a, pivots, permutation_of(b, pivots, rows)]
    outs = [(kind.shape[-2:], kind.dtype), ((least,), I32), ((rows,), I32)]
    return expanded(b, "LuDecomposition", [a], outs)


def _lu_linearize(active: Active, a: Any) -> Derivative:
    """With p a = l u: l⁻¹ p da u⁻¹ = l⁻¹ dl + du u⁻¹, a lower and an upper triangle."""
    factors, pivots, permutation = lu(a)
    kind = typeof(a)
    ndim, (rows, columns) = kind.ndim, kind.shape[-2:]
    least = min(rows, columns)
    left = lower_part(slice_dim(factors, 0, least, ndim - 1), 1)
    left = on_diagonal(padded(left, (rows, rows)), 1)
    right = upper(slice_dim(factors, 0, least, ndim - 2))
    if least < columns:
        right = concatenate(right, identity_rows(right, least), dim=ndim - 2)

    def linear(ta: Any) -> Any:
        ta = take_rows(ta, permutation)
        inner = triangular_solve(left, ta, left=True, low=True, op="N", unit=True)
        inner = triangular_solve(right, inner, left=False, low=False, op="N", unit=False)
        dl = matmul(left, lower_part(inner, 1))
        return add(dl, matmul(upper(inner), right)), ZERO, ZERO

    return (factors, pivots, permutation), linear


lu = factorization(
    "lu",
    _lu_type,
    lower_on={"cpu": _lu_on_cpu, "gpu": _lu_on_gpu, "tpu": _lu_on_tpu},
    linearize=_lu_linearize,
    multi=True,
    operations=cubic(2 / 3),
    doc="l below the diagonal and u, of a[order] = l u; pivots; order; LAPACK getrf",
    examples=[
        Example((f32(3, 3),)),
        Example((f32(2, 4, 3),), order=1),
        Example((f32(2, 4),), order=1),
        Example((c64(3, 3),), order=1),
    ],
)

# ---- solutions ------------------------------------------------------------------------------


def lu_solve(factors: Any, permutation: Any, b: Any, *, op: str = "N") -> Any:
    """x with op(a) x = b, from the factors of a; ``op`` is a letter as of ``triangular_solve``."""

    def solve(b: Any, low: bool) -> Any:
        return triangular_solve(factors, b, left=True, low=low, op=op, unit=low)

    if op in ("N", "R"):
        return solve(solve(take_rows(b, permutation), True), False)
    return take_rows(solve(solve(b, False), True), inverse_permutation(permutation))


def _solve_type(a: ArrayType, b: ArrayType) -> ArrayType:
    check_square("solve", a)
    check_matrices("solve", a, b)
    if b.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"solve: b must have as many rows as there are unknowns, {a.shape[-1]}, got a {a} "
            f"and b {b}"
        )
    return ArrayType(b.shape, b.dtype)


def _solve_lower(b: Builder, a: Value, rhs: Value) -> Value:
    def solved(a: Any, rhs: Any) -> Any:
        factors, _, order = lu(a)
        return lu_solve(factors, order, rhs)

    return b.traced(solved, a, rhs)


def _solve_linearize(active: Active, a: Any, b: Any) -> Derivative:
    """a x = b, so a dx = db - da x; the factors of a serve both."""
    _solve_type(typeof(a), typeof(b))  # what follows would broadcast what does not fit
    factors, _, permutation = lu(a)
    x = lu_solve(factors, permutation, b)

    def linear(ta: Any, tb: Any) -> Any:
        change = add_tangents(tb, ZERO if ta is ZERO else neg(matmul(ta, x)))
        return lu_solve(factors, permutation, change)

    return x, linear


def _solve_transpose(ct: Any, a: Any, b: Any) -> Cotangents:
    if not isinstance(b, Linear) or isinstance(a, Linear):
        return [None, None]
    return [None, solve(matrix_transposed(a), ct)]


solve = factorization(
    "solve",
    _solve_type,
    _solve_lower,
    linearize=_solve_linearize,
    transpose=_solve_transpose,
    dims=solving,
    operations=cubic(2 / 3),
    doc="x with a x = b; LAPACK getrf, trsm",
    examples=[
        Example((f32(3, 3), f32(3, 2)), diagonal=1.5),
        Example((f32(2, 4, 4), f32(2, 4, 1)), diagonal=1.5, order=1),
        Example((c64(3, 3), c64(3, 2)), diagonal=1.5, order=1),
    ],
)
