"""``scan``: a program once for every row of its inputs, carrying values along.

The body takes what is FIXED, what is carried, and one row of each input; it gives the next carry
and one row of each output. Every transformation transforms the body, once, and scans again: the
linearization stores for each row only what differs between rows, the transpose scans the other way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phalanx.base import lengths
from phalanx.control.family import with_subprograms
from phalanx.control.isolated import behind_barriers, hidden
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Primitive
from phalanx.core.program import Frame, Program
from phalanx.core.roles import CARRY, Roles
from phalanx.core.runs import Loop
from phalanx.core.types import ArrayType

I32, I64 = np.dtype("int32"), np.dtype("int64")


def _frame(
    *, program: Program, ins: Roles, outs: Roles, length: int, reverse: bool, unroll: int,
    isolated: bool = False,
) -> Frame:  # fmt: skip
    return Frame((program,), ins, outs, Loop(length, reverse))


def _lower(
    b: Builder, *xs: Value, program: Program, ins: Roles, outs: Roles, length: int,
    reverse: bool, unroll: int, isolated: bool = False,
) -> list[Value]:  # fmt: skip
    """A loop that counts, and writes rows into whole arrays as it goes.

    Of one that is ``isolated`` the compiler does not know how often it runs, nor what is around.
    """
    frame = Frame((program,), ins, outs, Loop(length, reverse))
    counted = I32 if lengths.fits(length, np.iinfo(I32).max) else I64

    def step(b: Builder, i: Value, state: Sequence[Value]) -> list[Value]:
        at = b.subtract(b.constant(length - 1, counted), i) if reverse else i
        operands = frame.with_carried_in(xs, frame.carried_out(state))
        rows = zip(operands, ins, b.ins, program.inputs, strict=True)
        inputs = [_row(b, x, at, t, v.type) if r.layout else x for x, r, t, v in rows]
        outputs = behind_barriers(b, program, i, inputs) if isolated else b.inline(program, *inputs)
        results = zip(state, outputs, outs, b.outs, strict=True)
        return [new if r is CARRY else _write(b, old, new, at, t) for old, new, r, t in results]

    def body(b: Builder, i: Value, *state: Value) -> list[Value]:
        now = list(state)
        for _ in range(unroll):
            now = step(b, i, now)
            i = b.add(i, b.constant(1, counted))
        return [i, *now]

    carry = iter(frame.carried_in(xs))
    start = [
        next(carry) if r is CARRY else b.summed_as(t, _empty(b, t))
        for r, t in zip(outs, b.outs, strict=True)
    ]
    if not length:
        return start  # there is no row that the body could be given
    in_whole_steps = length - length % unroll
    end = hidden(b, length, counted) if isolated else None

    def more(b: Builder, i: Value, *_: Value) -> Value:
        return b.compare(i, b.constant(in_whole_steps, counted) if end is None else end, "LT")

    state = b.while_([b.constant(0, counted), *start], more, body)[1:]
    for i in range(length % unroll):
        state = step(b, b.constant(in_whole_steps + i, counted), state)
    return state


def _empty(b: Builder, type: ArrayType) -> Value:
    return b.broadcast_in_dim(b.constant(0, type.dtype), type.shape, ())


def _row(b: Builder, x: Value, at: Value, type: ArrayType, row: ArrayType) -> Value:
    """The row ``at`` of ``x``, which is of ``type``."""
    starts = [at] + [b.constant(0, b.type(at).dtype)] * row.ndim
    one = b.dynamic_slice(b.summed_as(type, x), starts, (1, *row.shape))
    return b.reshape(b.summed_as(type, one), row.shape)


def _write(b: Builder, rows: Value, row: Value, at: Value, type: ArrayType) -> Value:
    """``rows``, of ``type``, with ``row`` in place of the one ``at`` this index."""
    shape = b.type(row).shape
    starts = [at] + [b.constant(0, b.type(at).dtype)] * len(shape)
    written = b.summed_as(type, b.reshape(row, (1, *shape)))
    return b.summed_as(type, b.dynamic_update_slice(b.summed_as(type, rows), written, starts))


scan: Primitive = with_subprograms(
    "scan",
    _lower,
    _frame,
    doc="carry, rows = program(fixed, carry, row) for each row; stablehlo.while",
)
