"""Tridiagonal systems by elimination in operations, for platforms that have no function for them.

Of two rows the one with the larger pivot comes first, so there are two diagonals above, as in
LAPACK's gtsv. Arrays here have the rows in front: diagonals [n, ..., 1], right sides [n, ..., k].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Builder, Value
from phalanx.core.types import typeof
from phalanx.primitives.basis import add, broadcast, move, mul, neg, reshape, sub
from phalanx.primitives.compare import eq, lt, max, select
from phalanx.primitives.domains import I32
from phalanx.primitives.elementwise import abs, div
from phalanx.primitives.linalg.algebra import complex_as, real_part
from phalanx.primitives.linalg.row_loops import repeated, row_of, with_row
from phalanx.primitives.reduce import reduce_max, reduce_or
from phalanx.primitives.shape import concatenate, expand_dims, slice_dim, zeros_like


def eliminated(b: Builder, dl: Value, d: Value, du: Value, rhs: Value, *, perturbed: bool) -> Value:
    """The solution; where a pivot is 0 it is NaN, or that pivot is ``perturbed``."""
    *start, least, low, on, above, right = b.traced(
        partial(_rows, perturbed=perturbed), dl, d, du, rhs
    )
    below = [b.traced(_following, x) for x in (low, on, above, right)]
    triangle = _in_turn(b, _eliminate, [*start, least], below, [on, above, above, right])
    after = b.traced(_nothing, right)
    (x,) = _in_turn(b, _substitute, after, triangle, [right], backwards=True)
    return b.traced(partial(_solution, perturbed=perturbed), x, triangle[0])


def _in_turn(
    b: Builder,
    step: Callable[..., list[Any]],
    state: Sequence[Value],
    rows: Sequence[Value],
    outs: Sequence[Value],
    *,
    backwards: bool = False,
) -> list[Value]:
    """Run ``step`` on a state and a row of each array, one after the other.

    It gives the next state, and a row of each of what is returned, which are like ``outs``.
    """
    count, states = b.type(rows[0]).shape[0], len(state)

    def body(b: Builder, i: Value, *values: Value) -> list[Value]:
        at = b.subtract(b.constant(count - 1, I32), i) if backwards else i
        held, written = values[:states], values[states:]
        results = b.traced(step, *held, *(row_of(b, x, at) for x in rows))
        new = [with_row(b, x, at, y) for x, y in zip(written, results[states:], strict=True)]
        return [*results[:states], *new]

    return repeated(b, count, [*state, *outs], body)[states:]


# ---- in operations --------------------------------------------------------------------------


def _rows(dl: Any, d: Any, du: Any, rhs: Any, *, perturbed: bool) -> list[Any]:
    """The first row, the least pivot, and all rows."""
    last = typeof(d).ndim - 1
    sizes = max(max(abs(dl), abs(du)), abs(d))
    error = float(dtypes.finfo(typeof(d).dtype).eps) if perturbed else 0.0
    least = expand_dims(mul(reduce_max(sizes, dims=(last,)), error), (last,))
    low, on, above = (expand_dims(move(x, last, 0), (last + 1,)) for x in (dl, d, du))
    zero = zeros_like(slice_dim(above, 0, 1, 0))  # the last element lies outside of the matrix
    above = concatenate(slice_dim(above, 0, typeof(on).shape[0] - 1, 0), zero, dim=0)
    right = move(rhs, last, 0)
    return [_first(on), _first(above), _first(right), least, low, on, above, right]


def _first(x: Any) -> Any:
    return reshape(slice_dim(x, 0, 1, 0), shape=typeof(x).shape[1:])


def _nothing(x: Any) -> list[Any]:
    return [_first(zeros_like(x))] * 2


def _following(x: Any) -> Any:
    """The row after each row; zeros after the last."""
    zero = zeros_like(slice_dim(x, 0, 1, 0))
    return concatenate(slice_dim(x, 1, typeof(x).shape[0], 0), zero, dim=0)


def _eliminate(
    on: Any, above: Any, right: Any, least: Any, low: Any, on1: Any, above1: Any, right1: Any
) -> list[Any]:
    """What remains of the next row, and what this one is in the triangle.

    ``low``, ``on1``, ``above1`` and ``right1`` are the next row; after the last one zeros.
    """
    swap = lt(abs(on), abs(low))
    zero = zeros_like(above)
    pairs = ((on, low), (above, on1), (zero, above1))
    first, second = ([select(swap, *p[::k]) for p in pairs] for k in (-1, 1))
    swapped = broadcast(swap, shape=typeof(right).shape, dims=tuple(range(typeof(right).ndim)))
    pivot, rest = select(swapped, right1, right), select(swapped, right, right1)
    small = lt(abs(first[0]), least)
    negative = lt(real_part(first[0]), 0)
    first[0] = select(small, complex_as(select(negative, neg(least), least), on), first[0])
    factor = div(second[0], first[0])
    remains = [sub(y, mul(factor, x)) for x, y in zip(first[1:], second[1:], strict=True)]
    return [*remains, sub(rest, mul(_wide(factor, right), pivot)), least, *first, pivot]


def _substitute(x1: Any, x2: Any, on: Any, above: Any, second: Any, right: Any) -> list[Any]:
    """This row of the solution, after the two below it."""
    solved = add(mul(_wide(above, right), x1), mul(_wide(second, right), x2))
    x = div(sub(right, solved), _wide(on, right))
    return [x, x1, x]


def _wide(x: Any, y: Any) -> Any:
    """``x`` [..., 1] in the shape of ``y`` [..., k]."""
    return broadcast(x, shape=typeof(y).shape, dims=tuple(range(typeof(y).ndim)))


def _solution(x: Any, pivots: Any, *, perturbed: bool) -> Any:
    if not perturbed:
        singular = reduce_or(eq(pivots, 0), dims=(0,))
        shape, ndim = typeof(x).shape, typeof(x).ndim
        x = select(broadcast(singular, shape=shape, dims=tuple(range(1, ndim))), np.nan, x)
    return move(x, 0, typeof(x).ndim - 2)
