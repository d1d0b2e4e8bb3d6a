"""Eigenvalues of large Hermitian matrices by division of their spectrum, in products of matrices.

The sign of h - σ has the eigenvectors of h, and tells of each whether its eigenvalue is above σ.
In a basis of those below and of those above, h consists of two blocks, which are divided in turn
until all are small (Nakatsukasa and Higham 2013). How large blocks are is known only while it
runs. So all of them stay where they are in one matrix, and a level divides at once those that are
not small: more operations than for one after the other, and one program of one size.

Of each row there is the first row of its block, and the size of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Primitive
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, broadcast, convert, mul, neg, reduce_sum, sub
from phalanx.primitives.bits import U32, and_, bitcast, not_, or_
from phalanx.primitives.compare import eq, gt, le, lt, min, select
from phalanx.primitives.cumulative import cummax
from phalanx.primitives.domains import I32
from phalanx.primitives.elementwise import abs, div, round
from phalanx.primitives.linalg.algebra import (
    adjoint,
    complex_as,
    diagonal,
    diagonal_matrix,
    identity_like,
    matmul,
    of_lower_triangle,
    real_part,
    symmetrized,
)
from phalanx.primitives.linalg.family import real_of
from phalanx.primitives.linalg.matrix_sign import norm_bound, polar_factor, rounding_error, scaled
from phalanx.primitives.linalg.row_loops import repeated, row_of, with_row
from phalanx.primitives.random_bits import threefry2x32
from phalanx.primitives.reduce import reduce_max
from phalanx.primitives.shape import iota

SMALL = 512  # rows up to which TPUs have a function that turns matrices without leaving the chip


def eigh_by_division(b: Builder, a: Value, small: Primitive, *, vectors: bool) -> list[Value]:
    """v and w, or w alone, of matrices given by their lower triangles; blocks are for ``small``."""
    kind = b.type(a)
    front, n = kind.shape[:-2], kind.shape[-1]
    count = int(np.prod(front, dtype=int))
    rows = b.reshape(a, (count, n, n))
    noise = b.traced(partial(_noise, n=n, dtype=kind.dtype))
    outs = [ArrayType((count, n, n), kind.dtype)] * vectors
    outs.append(ArrayType((count, n), real_of(kind.dtype)))

    def one(b: Builder, i: Value, *found: Value) -> list[Value]:
        results = _eigh(b, row_of(b, rows, i), noise, small, vectors)
        return [with_row(b, x, i, y) for x, y in zip(found, results, strict=True)]

    blank = [b.constant(0, t.dtype, t.shape) for t in outs]
    found = repeated(b, count, blank, one)
    return [b.reshape(x, (*front, *t.shape[1:])) for x, t in zip(found, outs, strict=True)]


def _eigh(b: Builder, a: Value, noise: Value, small: Primitive, vectors: bool) -> list[Value]:
    h = b.traced(of_lower_triangle, a)
    n = b.type(a).shape[0]
    v = [b.traced(identity_like, a)] * vectors
    whole = [b.constant(first, I32, (n,)) for first in (0, n)]

    def divisible(b: Builder, first: Value, size: Value, *_: Value) -> Value:
        return b.traced(_any_large, size)

    def level(b: Builder, first: Value, size: Value, h: Value, *v: Value) -> list[Value]:
        return _divided(b, first, size, h, v, noise)

    first, size, h, *v = b.while_([*whole, h, *v], divisible, level)
    return _solved(b, first, size, h, v, small)


def _any_large(size: Any) -> Any:
    return gt(reduce_max(size, dims=(0,)), SMALL)


# ---- a level --------------------------------------------------------------------------------


def _divided(
    b: Builder, first: Value, size: Value, h: Value, v: Sequence[Value], noise: Value
) -> list[Value]:
    """The blocks of ``h`` that are not small, divided, and the vectors turned with it."""
    sign = b.traced(_shifted, first, size, h)
    sign = _twice(b, lambda b, x: b.traced(_decided, _factor(b, x)), sign)
    below, low, lows = b.traced(_sides, first, size, sign)
    turn = b.traced(_within_blocks, noise, first)
    turn = _twice(b, lambda b, x: _factor(b, b.traced(_projected, below, low, x)), turn)
    return b.traced(_turned, first, size, low, lows, turn, h, *v)


def _twice(b: Builder, step: Callable[[Builder, Value], Value], x: Value) -> Value:
    """``step`` of ``step`` of ``x``, which the compiler writes out once."""

    def once(b: Builder, i: Value, x: Value) -> list[Value]:
        return [step(b, x)]

    return repeated(b, 2, [x], once)[0]


def _factor(b: Builder, x: Value) -> Value:
    return polar_factor(b, x, rounding_error(b.type(x)))


def _shifted(first: Any, size: Any, h: Any) -> Any:
    """The blocks without the means of their eigenvalues, and with none above 1; -1 if small."""
    mean = div(_sum_within(_real_diagonal(h), first), _as_real(size, h))
    x = sub(h, diagonal_matrix(complex_as(mean, h)))
    rows = _along_rows(reduce_sum(abs(x), dims=(1,)))
    largest = reduce_max(select(_together(first), rows, 0), dims=(1,))
    x = div(x, complex_as(_along_columns(select(eq(largest, 0), 1, largest)), x))
    return select(_along_columns(gt(size, SMALL)), x, neg(identity_like(x)))


def _decided(sign: Any) -> Any:
    """Eigenvalues that are as good as the mean have signs about 0, and from now on are above it.

    This is (sign + 1/2) / (3/2), of which the sign is taken again.
    """
    return add(mul(symmetrized(sign), 2 / 3), mul(identity_like(sign), 1 / 3))


def _sides(first: Any, size: Any, sign: Any) -> list[Any]:
    """The projector on what is below, which rows are to span that, and how many they are.

    Where nothing is below or nothing above, all is as good as equal, and any basis will do.
    """
    one = identity_like(sign)
    below = mul(sub(one, symmetrized(sign)), 0.75)  # (1 - sign) / 2, as it was decided
    count = round(_sum_within(_real_diagonal(below), first), mode="even")
    count = convert(count, dtype=I32, weak=False)
    divided = or_(le(size, SMALL), and_(gt(count, 0), lt(count, size)))
    below = select(_along_columns(divided), below, mul(one, 0.5))
    half = convert(mul(_as_real(size, sign), 0.5), dtype=I32, weak=False)
    count = select(divided, min(count, size), half)
    return [below, lt(sub(_places(first), first), count), count]


def _projected(below: Any, low: Any, turn: Any) -> Any:
    """The first columns of each block, made such as are below; the others above."""
    lower = matmul(below, turn)
    return scaled(select(_along_rows(low), lower, sub(turn, lower)))


def _turned(first: Any, size: Any, low: Any, lows: Any, turn: Any, h: Any, *v: Any) -> list[Any]:
    """The blocks after the level, and the matrices in the new basis."""
    divided = gt(size, SMALL)
    turn = select(_along_rows(divided), turn, identity_like(turn))
    first = select(and_(divided, not_(low)), add(first, lows), first)
    size = select(divided, select(low, lows, sub(size, lows)), size)
    h = symmetrized(matmul(adjoint(turn), matmul(h, turn)))
    return [first, size, _within_blocks(h, first), *(matmul(x, turn) for x in v)]


# ---- small blocks ---------------------------------------------------------------------------


def _solved(
    b: Builder, first: Value, size: Value, h: Value, v: Sequence[Value], small: Primitive
) -> list[Value]:
    """Several blocks that lie together are solved at once, as many as are small together."""
    n = b.type(h).shape[0]
    zero, last = b.constant(0, I32), b.constant(n - SMALL, I32)
    far = b.traced(_far, h)

    def remaining(b: Builder, at: Value, *_: Value) -> Value:
        return b.compare(at, b.constant(n, I32), "LT")

    def step(b: Builder, at: Value, w: Value, *v: Value) -> list[Value]:
        end = b.traced(_end, at, first, size)
        start = b.minimum(at, last)
        part = b.dynamic_slice(h, [start, start], (SMALL, SMALL))
        part = b.traced(_on_each_part, part, start, at, end, far)
        q, values = b.traced(partial(small, vectors=True), part)
        before = b.dynamic_slice(w, [start], (SMALL,))
        q, values = b.traced(_of_rows, start, at, end, q, values, before)
        w = b.dynamic_update_slice(w, values, [start])
        for x in v:
            columns = b.traced(matmul, b.dynamic_slice(x, [zero, start], (n, SMALL)), q)
            v = (b.dynamic_update_slice(x, columns, [zero, start]),)
        return [end, w, *v]

    w = b.traced(_real_diagonal, h)
    _, w, *v = b.while_([zero, w, *v], remaining, step)
    return [*v, b.traced(_ascending, w)]


def _far(h: Any) -> Any:
    """Beyond all eigenvalues."""
    return mul(norm_bound(h), 2)


def _ascending(w: Any) -> Any:
    """``w``, which is ascending but for rounding."""
    return cummax(w, dim=0, reverse=False)


def _end(at: Any, first: Any, size: Any) -> Any:
    """The last end of a block that is at most ``SMALL`` rows further."""
    ends = add(first, size)
    return reduce_max(select(le(ends, _for_each(add(at, SMALL), ends)), ends, 0), dims=(0,))


def _on_each_part(part: Any, start: Any, at: Any, end: Any, far: Any) -> Any:
    """``part`` with rows from ``at`` to ``end``; those before and after far below and above."""
    before, inside = _rows(start, at, end)
    both = and_(_along_rows(inside), _along_columns(inside))
    beside = _for_each(far, inside)
    beside = select(inside, 0, select(before, neg(beside), beside))
    return add(select(both, part, 0), diagonal_matrix(complex_as(beside, part)))


def _of_rows(start: Any, at: Any, end: Any, q: Any, values: Any, held: Any) -> list[Any]:
    """The vectors and values of rows from ``at`` to ``end``; others stay as they are."""
    _, inside = _rows(start, at, end)
    both = and_(_along_rows(inside), _along_columns(inside))
    outside = select(_along_rows(inside), 0, identity_like(q))
    return [select(both, q, outside), select(inside, values, held)]


def _rows(start: Any, at: Any, end: Any) -> tuple[Any, Any]:
    """Which rows from ``start`` on are before ``at``, and which others before ``end``."""
    places = iota(dtype=I32, shape=(SMALL,), dim=0)
    before, beyond = (lt(places, _for_each(sub(x, start), places)) for x in (at, end))
    return before, and_(beyond, not_(before))


# ---- rows, columns, blocks ------------------------------------------------------------------


def _noise(*, n: int, dtype: np.dtype) -> Any:
    """A matrix of numbers in which no direction is missing."""
    places = [iota(dtype=U32, shape=(n, n), dim=d) for d in range(2)]
    bits, _ = threefry2x32(np.uint32(0), np.uint32(0), *places, once=False)
    signed = convert(bitcast(bits, dtype=I32), dtype=real_of(dtype), weak=False)
    return complex_as(mul(signed, 2.0**-31), dtypes.scalar(0, dtype))


def _real_diagonal(h: Any) -> Any:
    return real_part(diagonal(h))


def _as_real(x: Any, y: Any) -> Any:
    return convert(x, dtype=real_of(typeof(y).dtype), weak=False)


def _places(x: Any) -> Any:
    return iota(dtype=I32, shape=typeof(x).shape, dim=0)


def _for_each(x: Any, y: Any) -> Any:
    """The number ``x`` in the shape of ``y``."""
    return broadcast(x, shape=typeof(y).shape, dims=())


def _along_rows(x: Any) -> Any:
    """x[j] at [i, j]"""
    return broadcast(x, shape=typeof(x).shape * 2, dims=(1,))


def _along_columns(x: Any) -> Any:
    """x[i] at [i, j]"""
    return broadcast(x, shape=typeof(x).shape * 2, dims=(0,))


def _together(first: Any) -> Any:
    """Whether rows i and j belong to one block."""
    return eq(_along_rows(first), _along_columns(first))


def _within_blocks(x: Any, first: Any) -> Any:
    return select(_together(first), x, 0)


def _sum_within(x: Any, first: Any) -> Any:
    """The sum over the block of each row."""
    return reduce_sum(select(_together(first), _along_rows(x), 0), dims=(1,))
