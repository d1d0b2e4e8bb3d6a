"""Triangular systems of equations.

How the matrix is taken is a letter, ``op``, as in LAPACK: as it is ("N"), transposed ("T"),
conjugated and transposed ("C"), or conjugated alone ("R").
"""

from __future__ import annotations

from typing import Any, Final

from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    Operands,
    Primitive,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add_tangents, move, neg
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import f32
from phalanx.primitives.linalg.algebra import (
    adjoint,
    conjugate,
    lower_part,
    matmul,
    matrix_transposed,
    upper,
)
from phalanx.primitives.linalg.family import (
    batch_in_front,
    check_matrices,
    check_square,
    cubic,
    lapack,
    solving,
)
from phalanx.primitives.shape import merge_dims, split_dim

_TRANSPOSED: Final = {"N": "T", "T": "N", "C": "R", "R": "C"}
_TAKEN: Final = {"T": matrix_transposed, "C": adjoint, "R": conjugate}


def _type(a: ArrayType, b: ArrayType, *, left: bool, low: bool, op: str, unit: bool) -> ArrayType:
    check_square("triangular_solve", a)
    check_matrices("triangular_solve", a, b)
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise ShapeError(
            f"triangular_solve: b must have as many {'rows' if left else 'columns'} as there are "
            f"unknowns, {a.shape[-1]}, got a {a} and b {b}"
        )
    return ArrayType(b.shape, b.dtype)


def _lower_on_cpu(
    b: Builder, a: Value, rhs: Value, *, left: bool, low: bool, op: str, unit: bool
) -> Value:
    if op == "R":
        a, op = b.conj(a), "N"
    kind = b.type(rhs)
    letters = {
        "side": "L" if left else "R",
        "uplo": "L" if low else "U",
        "trans_x": op,
        "diag": "U" if unit else "N",
    }
    outs = [(kind.shape[-2:], kind.dtype)]
    return lapack(b, "trsm", [a, rhs], outs, batch=kind.ndim - 2, in_place={1: 0}, **letters)[0]


_XLA: Final = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def _lower(
    b: Builder, a: Value, rhs: Value, *, left: bool, low: bool, op: str, unit: bool
) -> Value:
    if op == "R":
        a, op = b.conj(a) if dtypes.is_complex(b.type(a).dtype) else a, "N"
    return b.triangular_solve(a, rhs, left, low, unit, _XLA[op])


def _linearize(
    active: Active, a: Any, b: Any, *, left: bool, low: bool, op: str, unit: bool
) -> Derivative:
    """op(a) x = b, so op(a) dx = db - op(da) x."""
    params: dict[str, Any] = {"left": left, "low": low, "op": op, "unit": unit}
    x = triangular_solve(a, b, **params)

    def product(ta: Any) -> Any:
        ta = (lower_part if low else upper)(ta, int(unit))
        ta = ta if op == "N" else _TAKEN[op](ta)
        return neg(matmul(ta, x) if left else matmul(x, ta))

    def linear(ta: Any, tb: Any) -> Any:
        change = add_tangents(tb, ZERO if ta is ZERO else product(ta))
        return triangular_solve(a, change, **params)

    return x, linear


def _transpose(ct: Any, a: Any, b: Any, *, op: str, **params: bool) -> Cotangents:
    if not isinstance(b, Linear) or isinstance(a, Linear):
        return [None, None]
    return [None, triangular_solve(a, ct, op=_TRANSPOSED[op], **params)]


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, left: bool, **params: Any) -> Batched:
    (a, b), (da, db) = values, dims
    if da is not None:
        return _lanes(axis, values, dims, left=left, **params)
    # One matrix for all lanes: each lane is more columns of b, or more rows.
    ndim = typeof(b).ndim - 1
    lanes_dim = ndim - 1 if left else ndim - 2
    b = move(b, db, lanes_dim)
    pair = typeof(b).shape[lanes_dim : lanes_dim + 2]
    x = triangular_solve(a, merge_dims(b, lanes_dim), left=left, **params)
    return split_dim(x, lanes_dim, pair), lanes_dim


_lanes = batch_in_front(lambda: triangular_solve)


def _params(left: bool, low: bool, op: str, unit: bool) -> dict[str, Any]:
    return {"left": left, "low": low, "op": op, "unit": unit}


triangular_solve = Primitive(
    "triangular_solve",
    _type,
    _lower,
    lower_on={"cpu": _lower_on_cpu},
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    dims=solving,
    elements=Elements(operations=cubic(1)),
    doc="x with op(a) x = b, or x op(a) = b, of a triangle a; LAPACK trsm",
    examples=[
        Example((f32(3, 3), f32(3, 2)), _params(True, True, "N", False), diagonal=2.0),
        Example((f32(2, 3, 3), f32(2, 4, 3)), _params(False, False, "T", True), diagonal=2.0),
        Example((c64(3, 3), c64(3, 2)), _params(True, False, "C", False), diagonal=2.0),
        Example((c64(3, 3), c64(2, 3)), _params(False, True, "R", False), diagonal=2.0),
    ],
)
