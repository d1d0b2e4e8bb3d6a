"""Reflections in operations, for platforms that have no function for them.

Reflection i is 1 - taus[i] v vᴴ, where v is 0 above row i, 1 there, and below it column i of ``a``.
"""

from __future__ import annotations

from typing import Any

from phalanx.core.builder import Builder, Value
from phalanx.core.types import typeof
from phalanx.primitives.basis import add, broadcast, mul, neg, reduce_sum, sub
from phalanx.primitives.compare import eq, ge, gt, max, select
from phalanx.primitives.domains import I32
from phalanx.primitives.elementwise import abs, div, sqrt, square
from phalanx.primitives.linalg.algebra import (
    adjoint,
    complex_as,
    conjugate,
    diagonal_matrix,
    imaginary_part,
    lower_part,
    matmul,
    on_diagonal,
    real_part,
    times_columns,
    upper,
)
from phalanx.primitives.linalg.row_loops import repeated
from phalanx.primitives.linalg.triangular import triangular_solve
from phalanx.primitives.reduce import argmax
from phalanx.primitives.shape import iota, slice_dim

# ---- products -------------------------------------------------------------------------------


def reflected(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """q c or c q, or with qᴴ, of the product q of reflections.

    q = 1 - v t vᴴ with an upper triangle t, whose inverse is what lies above the diagonal of vᴴv,
    with 1 / taus on it; Puglisi 1992.
    """
    if not left:
        return adjoint(reflected(a, taus, adjoint(c), left=True, transpose=not transpose))
    k = typeof(taus).shape[-1]
    last = typeof(a).ndim - 1
    none = eq(taus, 0)
    v = on_diagonal(lower_part(slice_dim(a, 0, k, last), 1), 1)
    v = times_columns(v, select(none, 0, add(mul(taus, 0), 1)))
    inverse = add(upper(matmul(adjoint(v), v), 1), diagonal_matrix(div(1, select(none, 1, taus))))
    inner = triangular_solve(
        inverse,
        matmul(adjoint(v), c),
        left=True,
        low=False,
        op="C" if transpose else "N",
        unit=False,
    )
    return sub(c, matmul(v, inner))


# ---- with exchanged columns -----------------------------------------------------------------


def pivoted(b: Builder, a: Value) -> list[Value]:
    """r and reflections, the order of the columns, and the taus; as of LAPACK's geqp3.

    Each step takes the column of which most is left; Businger and Golub 1965.
    """
    kind = b.type(a)
    front, (rows, columns) = kind.shape[:-2], kind.shape[-2:]
    count = min(rows, columns)
    order = b.iota(I32, (*front, columns), len(front))
    taus = b.constant(0, kind.dtype, (*front, count))

    def step(b: Builder, i: Value, *state: Value) -> list[Value]:
        return b.traced(_pivot, i, *state)

    return repeated(b, count, [a, order, taus], step)


def _pivot(i: Any, a: Any, order: Any, taus: Any) -> list[Any]:
    """Bring the longest column to place ``i``, and reflect it onto the diagonal."""
    last = typeof(a).ndim - 1
    rows, columns = _counted(a, last - 1, i), _counted(a, last, i)
    lengths = reduce_sum(select(ge(rows, 0), square(abs(a)), 0), dims=(last - 1,))
    lengths = select(ge(_counted(order, last - 1, i), 0), lengths, -1)
    longest = argmax(lengths, dim=last - 1, index_dtype=I32)
    a, order = _exchanged(a, i, longest), _exchanged(order, i, longest)

    v, tau, length = _reflection(_column(a, i), i)
    repeated = _along(v, a, last)
    products = reduce_sum(mul(conjugate(repeated), a), dims=(last - 1,))
    products = mul(_each(conjugate(tau), products), products)
    rest = sub(a, mul(repeated, _along(products, a, last - 1)))
    done = select(gt(rows, 0), repeated, a)
    done = select(eq(rows, 0), complex_as(_each(length, a), a), done)
    a = select(gt(columns, 0), rest, select(eq(columns, 0), done, a))
    at_i = eq(_counted(taus, last - 1, i), 0)
    return [a, order, select(at_i, _each(tau, taus), taus)]


def _reflection(x: Any, i: Any) -> tuple[Any, Any, Any]:
    """v, its tau, and what is left at row ``i`` of ``x``, whose rows below become 0."""
    last = typeof(x).ndim - 1
    rows = _counted(x, last, i)
    first = reduce_sum(select(eq(rows, 0), x, 0), dims=(last,))
    below = select(gt(rows, 0), x, 0)
    tail = reduce_sum(square(abs(below)), dims=(last,))
    length = sqrt(add(square(abs(first)), tail))
    length = select(ge(real_part(first), 0), neg(length), length)
    nothing = eq(max(abs(imaginary_part(first)), tail), 0)
    length = select(nothing, real_part(first), length)
    whole = complex_as(length, x)
    tau = select(nothing, 0, div(sub(whole, first), select(nothing, 1, whole)))
    scale = select(nothing, 1, sub(first, whole))
    return select(eq(rows, 0), 1, div(below, _each(scale, x))), tau, length


def _counted(x: Any, dim: int, i: Any) -> Any:
    """The position along a dimension of ``x``, counted from ``i``, one or one for each matrix."""
    return sub(iota(dtype=I32, shape=typeof(x).shape, dim=dim), _each(i, x))


def _column(x: Any, i: Any) -> Any:
    """x[..., i]"""
    last = typeof(x).ndim - 1
    return reduce_sum(select(eq(_counted(x, last, i), 0), x, 0), dims=(last,))


def _exchanged(x: Any, i: Any, j: Any) -> Any:
    """``x`` with the elements at ``i`` and ``j`` along the last dimension exchanged."""
    last = typeof(x).ndim - 1
    at_i, at_j = (eq(_counted(x, last, k), 0) for k in (i, j))
    mine, other = (_along(_column(x, k), x, last) for k in (i, j))
    return select(at_i, other, select(at_j, mine, x))


def _each(x: Any, y: Any) -> Any:
    """``x``, which has the first dimensions of ``y`` or none, in the shape of ``y``."""
    return broadcast(x, shape=typeof(y).shape, dims=tuple(range(typeof(x).ndim)))


def _along(x: Any, y: Any, without: int) -> Any:
    """``x``, which lacks one dimension of ``y``, in the shape of ``y``."""
    dims = tuple(d for d in range(typeof(y).ndim) if d != without)
    return broadcast(x, shape=typeof(y).shape, dims=dims)
