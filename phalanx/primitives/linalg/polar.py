"""The polar decomposition a = u h by factorizations, and singular values by it.

The weights of Halley's iteration (QDWH; Nakatsukasa, Bai and Gygi 2010) depend on the least
singular value alone. That is at least the rounding error times the largest, or as good as zero, so
they are known before, and how many steps there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from phalanx.core.builder import Builder, Value
from phalanx.core.types import typeof
from phalanx.primitives.basis import add, broadcast, mul, sub
from phalanx.primitives.compare import eq, max, select
from phalanx.primitives.elementwise import abs, div
from phalanx.primitives.linalg.algebra import (
    adjoint,
    complex_as,
    diagonal,
    identity_like,
    matmul,
    symmetrized,
    times_columns,
)
from phalanx.primitives.linalg.cholesky import cholesky
from phalanx.primitives.linalg.eigh import eigh
from phalanx.primitives.linalg.matrix_sign import norm_bound, polar_factor, rounding_error, scaled
from phalanx.primitives.linalg.qr import qr
from phalanx.primitives.linalg.triangular import triangular_solve
from phalanx.primitives.shape import concatenate, reverse, slice_dim

_LARGE = 100.0  # weights above which the way by a Cholesky factor loses digits


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
    return (_by_qr if c > _LARGE else _by_cholesky)(x, a, b, c)


def _by_qr(x: Any, a: float, b: float, c: float) -> Any:
    rows = typeof(x).ndim - 2
    m = typeof(x).shape[rows]
    stacked = concatenate(mul(x, c**0.5), identity_like(matmul(adjoint(x), x)), dim=rows)
    q, _ = qr(stacked, full=False, pivoting=False)
    upper, lower = slice_dim(q, 0, m, rows), slice_dim(q, m, typeof(q).shape[rows], rows)
    return add(mul(x, b / c), mul(matmul(upper, adjoint(lower)), (a - b / c) / c**0.5))


def _by_cholesky(x: Any, a: float, b: float, c: float) -> Any:
    inner = matmul(adjoint(x), x)
    factor = cholesky(add(identity_like(inner), mul(inner, c)))
    half = triangular_solve(factor, x, left=False, low=True, op="C", unit=False)
    change = triangular_solve(factor, half, left=False, low=True, op="N", unit=False)
    return add(mul(x, b / c), mul(change, a - b / c))


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
    p = polar_factor(b, r, rounding_error(b.type(a)))
    return b.traced(partial(_vectors, full=full) if vectors else _values, q, r, bound, p)


def _square(a: Any) -> list[Any]:
    """q, a square r without a singular value above 1, and a number; a is their product."""
    rows, columns = typeof(a).shape[-2:]
    q, r = (identity_like(a), a) if rows == columns else qr(a, full=False, pivoting=False)
    return [q, scaled(r), norm_bound(r)]


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
