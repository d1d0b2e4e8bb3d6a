"""Builder: loops over numbers, and rows of arrays in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phalanx.core.builder import Builder, Value
from phalanx.primitives.domains import I32


def repeated(
    b: Builder,
    count: int,
    state: Sequence[Value],
    step: Callable[..., Sequence[Value]],
) -> list[Value]:
    """The state after ``step(b, i, *state)`` for each i below ``count``."""

    def body(b: Builder, i: Value, *state: Value) -> list[Value]:
        return [b.add(i, b.constant(1, I32)), *step(b, i, *state)]

    def before_end(b: Builder, i: Value, *_: Value) -> Value:
        return b.compare(i, b.constant(count, I32), "LT")

    return b.while_([b.constant(0, I32), *state], before_end, body)[1:]


def row_of(b: Builder, x: Value, i: Value) -> Value:
    """x[i]"""
    shape = b.type(x).shape
    starts = [i, *[b.constant(0, I32)] * (len(shape) - 1)]
    return b.reshape(b.dynamic_slice(x, starts, (1, *shape[1:])), shape[1:])


def with_row(b: Builder, x: Value, i: Value, row: Value) -> Value:
    """``x``, with ``row`` as x[i]."""
    shape = b.type(x).shape
    starts = [i, *[b.constant(0, I32)] * (len(shape) - 1)]
    return b.dynamic_update_slice(x, b.reshape(row, (1, *shape[1:])), starts)
