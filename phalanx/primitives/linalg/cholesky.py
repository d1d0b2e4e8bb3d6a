"""The Cholesky factor of positive definite matrices."""

from __future__ import annotations

from typing import Any

from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Active, Derivative, Elements, Example, Primitive
from phalanx.core.types import ArrayType
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import f32
from phalanx.primitives.linalg.algebra import (
    lower_half,
    lower_part,
    matmul,
    of_lower_triangle,
)
from phalanx.primitives.linalg.family import (
    INFO,
    NOT_LINEAR,
    batch_in_front,
    check_square,
    cubic,
    lapack,
    matrices_in_front,
    on_gpu,
    where_done,
)
from phalanx.primitives.linalg.triangular import triangular_solve


def _type(a: ArrayType) -> ArrayType:
    check_square("cholesky", a)
    return ArrayType(a.shape, a.dtype)


def _lower(b: Builder, a: Value) -> Value:
    return b.traced(lower_part, b.cholesky(a, True))


def _lower_on_cpu(b: Builder, a: Value) -> Value:
    kind = b.type(a)
    outs = [(kind.shape[-2:], kind.dtype), INFO]
    factor, info = lapack(b, "potrf", [a], outs, batch=kind.ndim - 2, uplo="L")
    return b.traced(lower_part, *where_done(b, info, factor))


def _lower_on_gpu(b: Builder, a: Value) -> Value:
    kind = b.type(a)
    outs = [(kind.shape[-2:], kind.dtype), INFO]
    name = "cusolver_potrf_ffi"
    factor, info = on_gpu(b, name, [a], outs, batch=kind.ndim - 2, lower=True)
    return b.traced(lower_part, *where_done(b, info, factor))


def _linearize(active: Active, a: Any) -> Derivative:
    """dl = l Φ(l⁻¹ da l⁻ᴴ), Φ the lower triangle with half of the diagonal; Murray 2016."""
    factor = cholesky(a)

    def linear(ta: Any) -> Any:
        ta = of_lower_triangle(ta)
        inner = triangular_solve(factor, ta, left=True, low=True, op="N", unit=False)
        inner = triangular_solve(factor, inner, left=False, low=True, op="C", unit=False)
        return matmul(factor, lower_half(inner))

    return factor, linear


cholesky = Primitive(
    "cholesky",
    _type,
    _lower,
    lower_on={"cpu": _lower_on_cpu, "gpu": _lower_on_gpu},
    linearize=_linearize,
    transpose=NOT_LINEAR,
    batch=batch_in_front(lambda: cholesky),
    dims=matrices_in_front,
    elements=Elements(operations=cubic(1 / 3)),
    doc="the lower triangle l with l lᴴ = a, of which the lower triangle is read; LAPACK potrf",
    examples=[
        Example((f32(3, 3),), diagonal=4.0),
        Example((f32(2, 3, 3),), diagonal=4.0, order=1),
        Example((c64(3, 3),), diagonal=4.0, order=1),
    ],
)
