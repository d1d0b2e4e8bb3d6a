"""The polar decomposition a = u h by products and factorizations, and singular values by it.

The weights of Halley's iteration (QDWH; Nakatsukasa, Bai and Gygi 2010) depend on the least
singular value alone. That is at least the rounding error times the largest, or as good as zero, so
they are known before, and how many steps there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Builder, Value
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import I32, add, broadcast, mul, reduce_sum, sub
from phalanx.ops.compare import eq, max, select
from phalanx.ops.elementwise import abs, div, sqrt
from phalanx.ops.linalg.algebra import (
    adjoint,
    complex_as,
    diagonal,
    identity_like,
    matmul,
    symmetrized,
    times_columns,
)
from phalanx.ops.linalg.cholesky import cholesky
from phalanx.ops.linalg.eigh import eigh
from phalanx.ops.linalg.family import real_of
from phalanx.ops.linalg.qr import qr
from phalanx.ops.linalg.triangular import triangular_solve
from phalanx.ops.reduce import reduce_max
from phalanx.ops.shape import concatenate, reverse, slice_dim

_LARGE = 100.0  # weights above which the way by a Cholesky factor loses digits


def rounding_error(type: ArrayType) -> float:
    """How far numbers of the dtype are apart, at 1."""
    return float(dtypes.finfo(type.dtype).eps)


# ---- the iteration --------------------------------------------------------------------------


def weights(error: float, most: int = 10) -> Iterator[tuple[float, float, float]]:
    """a, b and c of each step x (a + b xᴴx) / (1 + c xᴴx), which takes the least singular value
    from ``error`` to nearly 1."""
    least = error
    for _ in range(most):
        if np.abs(1 - least) < 5 * error:
            return
        square = least * least
        root = np.cbrt(4 * (1 - square) / square**2)
        outer = np.sqrt(1 + root)
        a = outer + np.sqrt(8 - 4 * root + 8 * (2 - square) / (square * outer)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        least = np.minimum(least * (a + b * square) / (1 + c * square), 1.0)
        yield float(a), float(b), float(c)


def step(x: Any, a: float, b: float, c: float) -> Any:
    """A step of the iteration, which needs no inverse."""
    factors = _factors(a, b, c)
    return _by_qr(x, *factors) if c > _LARGE else _by_cholesky(x, *factors)


def _factors(a: float, b: float, c: float) -> tuple[float, float, float]:
    """Of what is factorized, of x, and of the change."""
    weight = c**0.5 if c > _LARGE else c
    return weight, b / c, (a - b / c) / (weight if c > _LARGE else 1)


def _by_qr(x: Any, weight: Any, kept: Any, changed: Any) -> Any:
    rows = typeof(x).ndim - 2
    m = typeof(x).shape[rows]
    stacked = concatenate(_times(x, weight), identity_like(matmul(adjoint(x), x)), dim=rows)
    q, _ = qr(stacked, full=False, pivoting=False)
    upper, lower = slice_dim(q, 0, m, rows), slice_dim(q, m, typeof(q).shape[rows], rows)
    return add(_times(x, kept), _times(matmul(upper, adjoint(lower)), changed))


def _by_cholesky(x: Any, weight: Any, kept: Any, changed: Any) -> Any:
    inner = matmul(adjoint(x), x)
    factor = cholesky(add(identity_like(inner), _times(inner, weight)))
    half = triangular_solve(factor, x, left=False, low=True, op="C", unit=False)
    change = triangular_solve(factor, half, left=False, low=True, op="N", unit=False)
    return add(_times(x, kept), _times(change, changed))


def _times(x: Any, factor: Any) -> Any:
    """``x`` times a number, which may be an array."""
    if isinstance(factor, float):
        return mul(x, factor)
    return mul(x, complex_as(broadcast(factor, shape=typeof(x).shape, dims=()), x))


def scaled(x: Any) -> Any:
    """``x``, divided so that no singular value is above 1."""
    shape, dims = typeof(x).shape, tuple(range(typeof(x).ndim - 2))
    return div(x, complex_as(broadcast(_bound(x), shape=shape, dims=dims), x))


def _bound(x: Any) -> Any:
    """At least the largest singular value, and at most √n times that; 1 for matrices of zeros."""
    size, last = abs(x), typeof(x).ndim - 1
    columns, rows = (reduce_sum(size, dims=(d,)) for d in (last - 1, last))
    if not typeof(x).shape[-1]:
        return reduce_sum(rows, dims=(last - 1,))
    both = [sqrt(reduce_max(each, dims=(last - 1,))) for each in (columns, rows)]
    bound = mul(*both)
    return select(eq(bound, 0), 1, bound)


def newton(u: Any) -> Any:
    """One step of Newton and Schulz, for the last digits."""
    return sub(mul(u, 1.5), mul(matmul(u, matmul(adjoint(u), u)), 0.5))


# ---- singular values ------------------------------------------------------------------------


def svd_by_polar(b: Builder, a: Value, *, full: bool, vectors: bool) -> list[Value]:
    """u, s and vᴴ of a = p h, where h = v diag(s) vᴴ, and u = p v; or s alone."""
    rows, columns = b.type(a).shape[-2:]
    if rows < columns:
        out = svd_by_polar(b, b.traced(adjoint, a), full=full, vectors=vectors)
        return [b.traced(adjoint, out[2]), out[1], b.traced(adjoint, out[0])] if vectors else out
    q, r, bound = b.traced(_square, a)
    p = r
    every = list(weights(rounding_error(b.type(a))))
    for way in (_by_qr, _by_cholesky):
        chosen = [_factors(*w) for w in every if (w[2] > _LARGE) == (way is _by_qr)]
        p = _iterated(b, p, way, np.asarray(chosen, real_of(b.type(a).dtype)))
    return b.traced(partial(_vectors, full=full) if vectors else _values, q, r, bound, p)


def _iterated(b: Builder, x: Value, way: Callable[..., Any], factors: np.ndarray) -> Value:
    """Steps with a row of ``factors`` each."""
    table = b.constant(factors, factors.dtype, factors.shape)

    def body(b: Builder, i: Value, x: Value) -> list[Value]:
        row = b.dynamic_slice(table, [i, b.constant(0, I32)], (1, 3))
        each = [b.reshape(b.slice(row, (0, k), (1, k + 1), (1, 1)), ()) for k in range(3)]
        return [b.add(i, b.constant(1, I32)), b.traced(way, x, *each)]

    def before_end(b: Builder, i: Value, x: Value) -> Value:
        return b.compare(i, b.constant(len(factors), I32), "LT")

    return b.while_([b.constant(0, I32), x], before_end, body)[1]


def _square(a: Any) -> list[Any]:
    """q, a square r without a singular value above 1, and a number; a is their product."""
    rows, columns = typeof(a).shape[-2:]
    q, r = (identity_like(a), a) if rows == columns else qr(a, full=False, pivoting=False)
    return [q, scaled(r), _bound(r)]


def _values(q: Any, r: Any, bound: Any, p: Any) -> list[Any]:
    (s,) = eigh(symmetrized(matmul(adjoint(p), r)), vectors=False)
    return [_descending(s, bound)]


def _vectors(q: Any, r: Any, bound: Any, p: Any, *, full: bool) -> list[Any]:
    """What of u belongs to singular values that are as good as 0 is made orthonormal at the end."""
    v, s = eigh(symmetrized(matmul(adjoint(p), r)), vectors=True)
    v = reverse(v, dims=(typeof(v).ndim - 1,))
    u = matmul(p, v)
    u = u if typeof(q).shape == typeof(u).shape else matmul(q, u)
    return [_orthonormal(u, full), _descending(s, bound), adjoint(v)]


def _descending(s: Any, bound: Any) -> Any:
    s = max(reverse(s, dims=(typeof(s).ndim - 1,)), 0)
    return mul(s, broadcast(bound, shape=typeof(s).shape, dims=tuple(range(typeof(s).ndim - 1))))


def _orthonormal(u: Any, full: bool) -> Any:
    """``u``, whose first columns are so already, with as many as there are rows if ``full``."""
    q, r = qr(u, full=full, pivoting=False)
    last, columns = typeof(u).ndim - 1, typeof(u).shape[-1]
    on = diagonal(slice_dim(r, 0, columns, last - 1))
    size = abs(on)
    phases = div(on, complex_as(select(eq(size, 0), 1, size), on))
    phases = select(eq(size, 0), 1, phases)
    first = times_columns(slice_dim(q, 0, columns, last), phases)
    return concatenate(first, slice_dim(q, columns, typeof(q).shape[-1], last), dim=last)
