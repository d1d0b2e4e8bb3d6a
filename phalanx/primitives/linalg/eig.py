"""Eigenvalues and eigenvectors of square matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Active, Derivative, Example
from phalanx.core.types import ArrayType, Shape, typeof
from phalanx.primitives.basis import broadcast, mul, reduce_sum, sub
from phalanx.primitives.compare import eq, select
from phalanx.primitives.complex import c64, complex, conj, imag, real
from phalanx.primitives.domains import I32, f32
from phalanx.primitives.elementwise import div
from phalanx.primitives.linalg.algebra import (
    adjoint,
    as_complex,
    diagonal,
    matmul,
    reciprocal_differences,
    times_columns,
)
from phalanx.primitives.linalg.family import (
    INFO,
    check_square,
    complex_of,
    cubic,
    factorization,
    lapack,
    on_gpu,
    where_done,
)
from phalanx.primitives.linalg.lu import lu, lu_solve
from phalanx.primitives.reduce import argmax
from phalanx.primitives.shape import iota


def _type(a: ArrayType, *, left: bool, right: bool) -> tuple[ArrayType, ...]:
    check_square("eig", a)
    dtype = complex_of(a.dtype)
    vectors = [ArrayType(a.shape, dtype)] * (left + right)
    return ArrayType(a.shape[:-1], dtype), *vectors


def _on_cpu(b: Builder, a: Value, *, left: bool, right: bool) -> list[Value]:
    letters = {"compute_left": "V" if left else "N", "compute_right": "V" if right else "N"}
    batch = b.type(a).ndim - 2
    results = lapack(b, "geev", [a], _results(b, a), batch=batch, in_place={}, **letters)
    return _wanted(b, results, left, right)


def _on_gpu(b: Builder, a: Value, *, left: bool, right: bool) -> list[Value]:
    """By LAPACK on the host; large ones by MAGMA, if it is installed."""
    name = "cuhybrid_eig_comp" if dtypes.is_complex(b.type(a).dtype) else "cuhybrid_eig_real"
    how, batch = {"left": left, "right": right, "magma": "auto"}, b.type(a).ndim - 2
    results = on_gpu(b, name, [a], _results(b, a), batch=batch, in_place={}, **how)
    return _wanted(b, results, left, right)


def _results(b: Builder, a: Value) -> list[tuple[Shape, np.dtype]]:
    """Eigenvalues, of real matrices in two parts; left and right vectors; and how it went."""
    kind = b.type(a)
    parts = 1 if dtypes.is_complex(kind.dtype) else 2
    vectors = (kind.shape[-2:], complex_of(kind.dtype))
    return [(kind.shape[-1:], kind.dtype)] * parts + [vectors, vectors, INFO]


def _wanted(b: Builder, results: Sequence[Value], left: bool, right: bool) -> list[Value]:
    *values, vl, vr, info = results
    w = values[0] if len(values) == 1 else b.complex(*values)
    return where_done(b, info, w, *([vl] if left else []), *([vr] if right else []))


def _linearize(active: Active, a: Any, *, left: bool, right: bool) -> Derivative:
    """With d = v⁻¹ da v: dw is its diagonal, and v⁻¹ dv is d over the differences of eigenvalues;
    Giles 2008. Left eigenvectors are those of aᴴ.
    """
    w, *vectors = eig(a, left=left, right=True)
    vr = vectors[-1]
    turned = _turned(vr)
    halves: list[Callable[[Any], Any]] = []
    if left:
        slope = _vector_slope(conj(w), vectors[0])
        halves.append(lambda ta: slope(adjoint(ta)))
    if right:
        halves.append(_vector_slope(w, vr))

    def linear(ta: Any) -> Any:
        ta = as_complex(ta)
        return diagonal(turned(ta)), *[half(ta) for half in halves]

    return (w, *vectors[: left + right]), linear


def _turned(v: Any) -> Callable[[Any], Any]:
    """v⁻¹ da v"""
    factors, _, permutation = lu(v)
    return lambda ta: lu_solve(factors, permutation, matmul(ta, v))


def _vector_slope(w: Any, v: Any) -> Callable[[Any], Any]:
    """The derivative of eigenvectors of norm 1 whose largest component is real."""
    gaps, turned = reciprocal_differences(w), _turned(v)
    shape, rows = typeof(v).shape, typeof(v).ndim - 2
    if not shape[rows]:
        return lambda ta: ta
    largest = argmax(real(mul(v, conj(v))), dim=rows, index_dtype=I32)
    columns = tuple(d for d in range(len(shape)) if d != rows)
    places = iota(dtype=I32, shape=shape, dim=rows)
    chosen = eq(places, broadcast(largest, shape=shape, dims=columns))

    def component(x: Any) -> Any:
        return reduce_sum(select(chosen, x, 0), dims=(rows,))

    peak = real(component(v))

    def linear(ta: Any) -> Any:
        tv = matmul(v, mul(gaps, turned(ta)))
        along = real(reduce_sum(mul(conj(v), tv), dims=(rows,)))
        phase = div(imag(component(tv)), peak)
        return sub(tv, times_columns(v, complex(along, phase)))

    return linear


eig = factorization(
    "eig",
    _type,
    lower_on={"cpu": _on_cpu, "gpu": _on_gpu},
    linearize=_linearize,
    multi=True,
    operations=cubic(25),
    doc="w of a v = v diag(w), left vectors, right vectors, as wanted, all complex; LAPACK geev",
    examples=[
        Example((f32(3, 3),), {"left": False, "right": True}),
        Example((f32(2, 3, 3),), {"left": True, "right": True}, order=1),
        Example((c64(3, 3),), {"left": True, "right": False}, order=1),
        Example((c64(3, 3),), {"left": False, "right": False}, order=1),
    ],
)
