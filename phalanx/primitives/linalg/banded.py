"""Tridiagonal systems of equations.

The diagonals have one length, n: the first element of the lower one and the last of the upper one
lie outside of the matrix.
"""

from __future__ import annotations

from typing import Any, Final

from phalanx.base.dtypes import is_complex
from phalanx.base.errors import ShapeError
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    ZERO,
    Active,
    Cotangents,
    Derivative,
    Example,
    Linear,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add_tangents, broadcast, mul, neg
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import f32
from phalanx.primitives.linalg.elimination import eliminated
from phalanx.primitives.linalg.family import (
    INFO,
    check_matrices,
    factorization,
    lapack,
    on_gpu,
    solving,
    where_done,
)
from phalanx.primitives.shape import concatenate, slice_dim, zeros_like


def _type(
    dl: ArrayType, d: ArrayType, du: ArrayType, b: ArrayType, *, perturbed: bool
) -> ArrayType:
    check_matrices("tridiagonal_solve", b)
    if perturbed and is_complex(b.dtype):
        raise TypeError(
            f"tridiagonal_solve: zero pivots are perturbed in real matrices alone, got b {b}"
        )
    for t in (dl, d, du):
        if t.shape != b.shape[:-1] or t.dtype != b.dtype:
            raise ShapeError(
                "tridiagonal_solve: three diagonals [..., n] and a b [..., n, k] of one dtype are "
                f"needed, got {dl}, {d}, {du} and {b}"
            )
    return ArrayType(b.shape, b.dtype)


def _on_cpu(b: Builder, dl: Value, d: Value, du: Value, rhs: Value, *, perturbed: bool) -> Value:
    kind = b.type(rhs)
    batch = kind.ndim - 2
    if perturbed:
        name = "tridiagonal_solve_perturbed_ffi"
        return b.matrix_call(name, [dl, d, du, rhs], [kind], batch, {}, {})[0]
    diagonal = (kind.shape[-2:-1], kind.dtype)
    *_, x, info = lapack(
        b,
        "gtsv",
        [dl, d, du, rhs],
        [diagonal, diagonal, diagonal, (kind.shape[-2:], kind.dtype), INFO],
        batch=batch,
        in_place={i: i for i in range(4)},
    )
    return where_done(b, info, x)[0]


_LEAST: Final = 3  # rows that cuSPARSE needs


def _on_gpu(b: Builder, dl: Value, d: Value, du: Value, rhs: Value, *, perturbed: bool) -> Value:
    kind, args = b.type(rhs), [dl, d, du, rhs]
    outs, batch = [(kind.shape[-2:], kind.dtype)], kind.ndim - 2
    if perturbed:
        name = "cu_tridiagonal_solve_perturbed"
        return on_gpu(b, name, args, outs, batch=batch, in_place={})[0]
    if kind.shape[-2] < _LEAST:
        return eliminated(b, dl, d, du, rhs, perturbed=False)
    return on_gpu(b, "cusparse_gtsv2_ffi", args, outs, batch=batch, in_place={3: 0})[0]


def _shifted(x: Any, by: int, dim: int) -> Any:
    """x[i - by] along ``dim``, zero outside; ``by`` is 1, 0 or -1."""
    n = typeof(x).shape[dim]
    if not by or not n:
        return x
    zero = zeros_like(slice_dim(x, 0, 1, dim))
    if by > 0:
        return concatenate(zero, slice_dim(x, 0, n - 1, dim), dim=dim)
    return concatenate(slice_dim(x, 1, n, dim), zero, dim=dim)


def _linearize(active: Active, dl: Any, d: Any, du: Any, b: Any, **params: bool) -> Derivative:
    """m x = b, so m dx = db - dm x."""
    x = tridiagonal_solve(dl, d, du, b, **params)
    rows = typeof(x).ndim - 2
    columns = tuple(range(rows + 1))

    def rows_times(diagonal: Any, by: int) -> Any:
        if diagonal is ZERO:
            return ZERO
        factors = broadcast(diagonal, shape=typeof(x).shape, dims=columns)
        return neg(mul(factors, _shifted(x, by, rows)))

    def linear(tl: Any, td: Any, tu: Any, tb: Any) -> Any:
        change = add_tangents(tb, rows_times(tl, 1), rows_times(td, 0), rows_times(tu, -1))
        return tridiagonal_solve(dl, d, du, change, **params)

    return x, linear


def _transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: bool) -> Cotangents:
    if not isinstance(b, Linear) or any(isinstance(x, Linear) for x in (dl, d, du)):
        return [None] * 4
    last = typeof(d).ndim - 1
    below, above = _shifted(du, 1, last), _shifted(dl, -1, last)
    return [None, None, None, tridiagonal_solve(below, d, above, ct, **params)]


tridiagonal_solve = factorization(
    "tridiagonal_solve",
    _type,
    eliminated,
    lower_on={"cpu": _on_cpu, "gpu": _on_gpu},
    linearize=_linearize,
    transpose=_transpose,
    dims=solving,
    operations=10,
    doc="x with dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] = b[i]; LAPACK gtsv",
    examples=[
        Example((f32(3), f32(3), f32(3), f32(3, 2)), {"perturbed": False}, low=0.5),
        Example((f32(2, 4), f32(2, 4), f32(2, 4), f32(2, 4, 1)), {"perturbed": True}, low=0.5),
        Example((c64(3), c64(3), c64(3), c64(3, 2)), {"perturbed": False}, low=0.5),
    ],
)
