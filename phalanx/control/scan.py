"""``scan``: a program once for every row of its inputs, carrying values along.

The body takes constants, the carry and one row of each input; it gives the next carry and one
row of each output. Every transformation transforms the body, once, and scans again: the
linearization stores for each row only what differs between rows, the transpose scans the
other way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.control.call import spread_cotangents
from phalanx.control.scan_linear import Parts, linear_scan
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, Inside, Linear, Primitive
from phalanx.core.program import Program
from phalanx.core.trace import running
from phalanx.core.types import ArrayType
from phalanx.ops.basis import add_tangents, instantiate, move, zeros
from phalanx.spmd.replication import varying_outputs
from phalanx.transforms.batch import batch, place_lanes, with_lanes
from phalanx.transforms.stage import Stage, evaluate
from phalanx.transforms.transpose import backward

I32 = np.dtype("int32")


def _type(
    *types: ArrayType, program: Program, parts: Parts, length: int, reverse: bool, unroll: int
) -> tuple[ArrayType, ...]:
    out = program.output_types
    return (*out[: parts.carried], *(with_lanes(t, 0, length) for t in out[parts.carried :]))


# ---- lowering -----------------------------------------------------------------------------------


def _lower(
    b: Any, *xs: Any, program: Program, parts: Parts, length: int, reverse: bool, unroll: int
) -> list:
    constants, carry, rows = parts.split(xs)
    written = [
        b.broadcast_in_dim(b.constant(0, t.dtype), t.shape, ()) for t in b.outs[parts.carried :]
    ]

    def step(b: Any, i: Any, state: Sequence[Any]) -> list:
        at = b.subtract(b.constant(length - 1, I32), i) if reverse else i
        here = [_row(b, x, at, t) for x, t in zip(rows, _row_types(program, parts), strict=True)]
        out = b.inline(program, *constants, *state[: parts.carried], *here)
        pairs = zip(state[parts.carried :], out[parts.carried :], strict=True)
        return [*out[: parts.carried], *(_write(b, whole, row, at) for whole, row in pairs)]

    def body(b: Any, i: Any, *state: Any) -> list:
        found = list(state)
        for _ in range(unroll):
            found = step(b, i, found)
            i = b.add(i, b.constant(1, I32))
        return [i, *found]

    whole_turns = length - length % unroll
    state = b.while_(
        [b.constant(0, I32), *carry, *written],
        lambda b, i, *_: b.compare(i, b.constant(whole_turns, I32), "LT"),
        body,
    )[1:]
    for i in range(whole_turns, length):
        state = step(b, b.constant(i, I32), state)
    return state


def _row_types(program: Program, parts: Parts) -> list[ArrayType]:
    return [v.type for v in parts.split(program.inputs)[2]]


def _row(b: Any, x: Any, at: Any, row: ArrayType) -> Any:
    starts = [at] + [b.constant(0, I32)] * row.ndim
    return b.reshape(b.dynamic_slice(x, starts, (1, *row.shape)), row.shape)


def _write(b: Any, whole: Any, row: Any, at: Any) -> Any:
    shape = b.type(row).shape
    starts = [at] + [b.constant(0, I32)] * len(shape)
    return b.dynamic_update_slice(whole, b.reshape(row, (1, *shape)), starts)


# ---- derivatives --------------------------------------------------------------------------------


def _linearize(
    nonzero: tuple[bool, ...], *primals: Any, program: Program, parts: Parts, length: int,
    reverse: bool, unroll: int,
) -> tuple:  # fmt: skip
    made = linear_scan(program, parts, nonzero)
    turns = {"length": length, "reverse": reverse, "unroll": unroll}
    known = [*made.constants, *primals]
    results = scan(*known, program=made.primal, parts=made.primal_parts, **turns)
    count = len(program.outputs)
    once = evaluate(made.hoisted, known[: made.primal_parts.constants])
    fixed, rows = made.residuals(primals, once, results[count:])

    def linear(*tangents: Any) -> tuple:
        constants, carry, moving = parts.split(tangents)
        carried = parts.split(program.inputs)[1]
        dense = [
            instantiate(t, v.type)
            for t, v, m in zip(carry, carried, made.carried, strict=True)
            if m
        ]
        operands = [*fixed, *_given(constants), *dense, *rows, *_given(moving)]
        found = iter(scan(*operands, program=made.linear, parts=made.linear_parts, **turns))
        return tuple(next(found) if m else ZERO for m in made.nonzero)

    return results[:count], linear


def _given(tangents: Sequence[Any]) -> list:
    return [t for t in tangents if t is not ZERO]


def _transpose(
    cts: tuple, *operands: Any, program: Program, parts: Parts, length: int, reverse: bool,
    unroll: int,
) -> list:  # fmt: skip
    constants, _, rows = parts.split(operands)
    given = tuple(ct is not ZERO for ct in cts[parts.carried :])
    # the body is linear in what it carries, also where that starts from a known value
    kinds = [v.type for v in parts.split(program.inputs)[1]]
    if not all(dtypes.is_inexact(t.dtype) for t in kinds):
        raise TypeError(
            "linear_transpose: a loop that carries integers cannot be transposed; let scan give "
            "them as rows instead"
        )
    wanted = tuple(isinstance(x, Linear) for x in operands)
    linear = parts.marks(wanted, carried=True)
    body, body_parts = _transposed_body(program, parts, linear, given)
    known = [x for x in constants if not isinstance(x, Linear)]
    totals = [zeros(x.type) for x in constants if isinstance(x, Linear)]
    ends = [instantiate(ct, t) for ct, t in zip(cts, kinds, strict=False)]
    moving = [x for x in rows if not isinstance(x, Linear)]
    found = scan(
        *known, *totals, *ends, *moving, *_given(cts[parts.carried :]),
        program=body, parts=body_parts, length=length, reverse=not reverse, unroll=unroll,
    )  # fmt: skip
    every = spread_cotangents(linear, [True] * sum(linear), found)
    return [ct if w else None for ct, w in zip(every, wanted, strict=True)]


def _transposed_body(
    program: Program, parts: Parts, linear: tuple[bool, ...], given: tuple[bool, ...]
) -> tuple[Program, Parts]:
    """One turn backwards: it carries the totals for the constants, and the carry's cotangents."""
    key = ("transpose scan", parts, linear, given)
    if key in program.derived:
        return program.derived[key]
    stage = Stage(None, program.name)
    kinds = zip(program.inputs, linear, strict=True)
    constants, carry, rows = parts.split([(v.type, x) for v, x in kinds])
    known = [stage.input(t) for t, x in constants if not x]
    totals = [stage.input(t) for t, x in constants if x]
    ends = [stage.input(t) for t, _ in carry]
    moving = [stage.input(t) for t, x in rows if not x]
    out_rows = program.output_types[parts.carried :]
    row_cts = [stage.input(t) for t, g in zip(out_rows, given, strict=True) if g]
    with running(stage):
        values, received = iter([*known, *moving]), iter(row_cts)
        operands = [
            Linear(t) if x else next(values) for t, x in (*constants, *carry, *rows)
        ]
        cts = [*ends, *(next(received) if g else ZERO for g in given)]
        found = iter(backward(program, operands, cts))
        sums = [add_tangents(total, next(found)) for total in totals]
        rest = [instantiate(next(found), t) for t, x in (*carry, *rows) if x]
    inputs = [*known, *totals, *ends, *moving, *row_cts]
    body, _ = stage.finish(inputs, [*sums, *rest], program.name)
    program.derived[key] = body, Parts(len(known), len(totals) + len(ends))
    return program.derived[key]


# ---- vectorization ------------------------------------------------------------------------------


def _batch(
    axis: Axis, values: Sequence, dims: tuple, *, program: Program, parts: Parts, length: int,
    reverse: bool, unroll: int,
) -> tuple:  # fmt: skip
    constants, carry, rows = parts.split(dims)
    inside = [*constants, *carry, *(None if d is None else 0 for d in rows)]
    body, carried, out = _batched_body(program, parts, axis, tuple(inside))
    whole = list(values)
    for i, d in enumerate(dims):
        if i >= parts.constants + parts.carried and d is not None:
            whole[i] = move(values[i], d, 1)  # a row has its lanes first
    for i, lanes in enumerate(carried):
        at = parts.constants + i
        if lanes:
            whole[at] = place_lanes(values[at], dims[at], 0, axis.size)
    found = scan(
        *whole, program=body, parts=parts, length=length, reverse=reverse, unroll=unroll
    )
    lanes = [0 if c else None for c in carried] + [None if d is None else 1 for d in out]
    return found, tuple(lanes)


def _batched_body(
    program: Program, parts: Parts, axis: Axis, dims: tuple
) -> tuple[Program, tuple[bool, ...], tuple]:
    """The body on all lanes, which carried values have lanes, and which output rows."""
    key = ("batch scan", parts, axis, dims)
    if key in program.derived:
        return program.derived[key]
    constants, carry, rows = parts.split(dims)
    carried = [d is not None for d in carry]
    while True:  # a carried value has lanes if it gets some in any turn
        where = [*constants, *(0 if c else None for c in carried), *rows]
        stage = Stage(None, program.name)
        inputs = [
            stage.input(v.type if d is None else with_lanes(v.type, d, axis.size))
            for v, d in zip(program.inputs, where, strict=True)
        ]
        with running(stage):
            outputs, lanes = batch(lambda *xs: evaluate(program, xs), axis, inputs, where)
            grown = [c or d is not None for c, d in zip(carried, lanes, strict=False)]
            if grown != carried:
                carried = grown
                continue
            keep = [*carried, *(d is not None for d in lanes[parts.carried :])]
            placed = [
                place_lanes(v, d, 0, axis.size) if k else v
                for v, d, k in zip(outputs, lanes, keep, strict=True)
            ]
        body, _ = stage.finish(inputs, placed, program.name)
        program.derived[key] = body, tuple(carried), tuple(lanes[parts.carried :])
        return program.derived[key]


def _thread(
    rewrite: Callable, state: tuple, *xs: Any, program: Program, parts: Parts, **turns: Any
) -> tuple:
    constants, carry, rows = parts.split(xs)
    out = scan(
        *constants, *state, *carry, *rows,
        program=rewrite(program, parts.constants),
        parts=Parts(parts.constants, len(state) + parts.carried), **turns,
    )  # fmt: skip
    return out[: len(state)], out[len(state) :]


def _vary(
    *operands: frozenset, program: Program, parts: Parts, length: int, reverse: bool, unroll: int
) -> tuple:
    constants, carry, rows = parts.split(operands)
    while True:
        out = varying_outputs(program, [*constants, *carry, *rows])
        grown = [c | v for c, v in zip(carry, out, strict=False)]
        if grown == carry:
            return (*carry, *out[parts.carried :])
        carry = grown


def _inside(params: dict[str, Any]) -> Inside | None:
    if not params["length"]:
        return None  # the carry that goes in comes out, whatever the body is
    parts = params["parts"]
    return Inside(
        params["program"],
        lambda program, *_: {**params, "program": program},
        parts.carried,
        parts.constants,
    )


scan: Callable = Primitive(
    "scan",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    vary=_vary,
    axes=lambda params: params["program"].axes,
    thread=_thread,
    inside=_inside,
    multi=True,
    doc="carry, rows = program(constants, carry, row) for each row; stablehlo.while",
)
