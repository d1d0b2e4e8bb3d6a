"""``loop``: a program again and again, while another says so.

The number of turns is not known before, so nothing can be stored for each turn: a loop is
differentiated forward only, by a loop that carries the tangents along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.control.call import call
from phalanx.control.scan_linear import Parts, stable_halves
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, NoRule, Primitive
from phalanx.core.program import Program, Var
from phalanx.core.trace import running
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import BOOL, broadcast, instantiate
from phalanx.ops.bits import and_
from phalanx.ops.compare import select
from phalanx.ops.reduce import reduce_or
from phalanx.spmd.replication import varying_outputs
from phalanx.transforms.batch import batch, place_lanes, with_lanes
from phalanx.transforms.effects import conditional, silent
from phalanx.transforms.stage import Stage, evaluate


def _divide(values: Sequence[Any], asked: int, parts: Parts) -> tuple[list, list, list]:
    """What the condition takes before the carry, what the body takes, and the carry."""
    values = list(values)
    constants, carry, _ = parts.split(values[asked:])
    return values[:asked], constants, carry


def _type(
    *types: ArrayType, condition: Program, program: Program, asked: int, parts: Parts
) -> tuple[ArrayType, ...]:
    return program.output_types


def _lower(
    b: Any, *xs: Any, condition: Program, program: Program, asked: int, parts: Parts
) -> list:
    known, constants, carry = _divide(xs, asked, parts)
    return b.while_(
        carry,
        lambda b, *state: b.inline(condition, *known, *state),
        lambda b, *state: b.inline(program, *constants, *state),
    )


# ---- forward derivatives ------------------------------------------------------------------------


def _linearize(
    nonzero: tuple[bool, ...], *primals: Any, condition: Program, program: Program, asked: int,
    parts: Parts,
) -> tuple:  # fmt: skip
    out = loop(*primals, condition=condition, program=program, asked=asked, parts=parts)
    joint = _joint(condition, program, asked, parts, nonzero[asked:])
    test, body, extra, marks = joint
    known, constants, carry = _divide(primals, asked, parts)
    types = [v.type for v in parts.split(program.inputs)[1]]

    def linear(*tangents: Any) -> tuple:
        _, moving, directions = _divide(tangents, asked, parts)
        given = [t for t in moving if t is not ZERO]
        dense = [
            instantiate(t, kind) for t, kind, m in zip(directions, types, marks, strict=True) if m
        ]
        found = loop(
            *known, *extra, *constants, *given, *carry, *dense,
            condition=test, program=body, asked=asked,
            parts=Parts(len(extra) + len(constants) + len(given), len(carry) + len(dense)),
        )  # fmt: skip
        rest = iter(found[len(carry) :])
        return tuple(next(rest) if m else ZERO for m in marks)

    return out, linear


def _joint(
    condition: Program, program: Program, asked: int, parts: Parts, nonzero: tuple[bool, ...]
) -> tuple[Program, Program, list, tuple[bool, ...]]:
    """Condition and body that carry the values and, behind them, their tangents."""
    key = ("joint loop", condition, asked, parts, nonzero)
    if key in program.derived:
        return program.derived[key]
    halves, marks = stable_halves(program, parts, nonzero)
    constants, carry, _ = parts.split([v.type for v in program.inputs])
    fixed, _, _ = parts.split(nonzero)
    stage = Stage(None, program.name)
    extra = [stage.input(typeof(c)) for c in halves.constants]
    values = [stage.input(t) for t in constants]
    moving = [stage.input(t) for t, n in zip(constants, fixed, strict=True) if n]
    state = [stage.input(t) for t in carry]
    tangents = [stage.input(t) for t, m in zip(carry, marks, strict=True) if m]
    with running(stage):
        primal = _evaluate_again(halves.primal, [*extra, *values, *state])
        residuals = halves.residuals([*values, *state], primal[len(carry) :])
        found = iter(evaluate(halves.linear, [*residuals, *moving, *tangents]))
        ends = [next(found) if n else ZERO for n in halves.nonzero]
        dense = [instantiate(t, k) for t, k, m in zip(ends, carry, marks, strict=True) if m]
    inputs = [*extra, *values, *moving, *state, *tangents]
    body, _ = stage.finish(inputs, [*primal[: len(carry)], *dense], program.name)
    test = _ignoring(condition, [t.type for t in tangents])
    program.derived[key] = test, body, halves.constants, marks
    return program.derived[key]


def _ignoring(condition: Program, more: Sequence[ArrayType]) -> Program:
    """``condition`` with further inputs, which it does not look at."""
    stage = Stage(None, condition.name)
    inputs = [stage.input(v.type) for v in condition.inputs]
    rest = [stage.input(t) for t in more]
    with running(stage):
        outputs = _evaluate_again(condition, inputs)
    return stage.finish([*inputs, *rest], outputs, condition.name)[0]


def _evaluate_again(program: Program, args: Sequence) -> list:
    """The results of ``program`` where it runs a second time: effects happen the first time."""
    if program.effects:
        return evaluate(silent(program), [np.bool_(False), *args])
    return evaluate(program, args)


# ---- vectorization ------------------------------------------------------------------------------


def _batch(
    axis: Axis, values: Sequence, dims: tuple, *, condition: Program, program: Program,
    asked: int, parts: Parts,
) -> tuple:  # fmt: skip
    known, constants, carry = _divide(dims, asked, parts)
    made = _batched(condition, program, axis, tuple(known), tuple(constants), tuple(carry))
    first, fixed, start = _divide(values, asked, parts)
    placed = [
        place_lanes(v, d, 0, axis.size) if has else v
        for v, d, has in zip(start, carry, made.lanes, strict=True)
    ]
    out = tuple(0 if has else None for has in made.lanes)
    if not made.per_lane:
        found = loop(
            *first, *fixed, *placed,
            condition=made.test, program=made.body, asked=asked, parts=parts,
        )  # fmt: skip
        return found, out
    goes = call(*first, *placed, program=made.test)
    found = loop(
        *first, *fixed, *goes, *placed, condition=_anyone(made.body, len(first) + len(fixed)),
        program=made.body, asked=0, parts=Parts(len(first) + len(fixed), 1 + len(placed)),
    )  # fmt: skip
    return found[1:], out


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Condition and body on all lanes, and which carried values have some.

    Where lanes stop at different times (``per_lane``), the condition is asked for the first turn
    only; the body carries which lanes go on, before the other values, and asks for the next.
    """

    test: Program
    body: Program
    lanes: tuple[bool, ...]
    per_lane: bool


def _batched(
    condition: Program, program: Program, axis: Axis, known: tuple, constants: tuple, carry: tuple
) -> _Lanes:
    key = ("batch loop", condition, axis, known, constants, carry)
    if key not in program.derived:
        lanes, per_lane = _stable_lanes(condition, program, axis, known, constants, carry)
        where = [0 if has else None for has in lanes]
        test = _batched_condition(condition, axis, [*known, *where], per_lane)
        if per_lane:
            body = _body_of_differing_lanes(condition, program, axis, known, constants, where)
        else:
            body = _batched_body(program, axis, [*constants, *where], where)
        program.derived[key] = _Lanes(test, body, tuple(lanes), per_lane)
    return program.derived[key]


def _stable_lanes(
    condition: Program, program: Program, axis: Axis, known: tuple, constants: tuple, carry: tuple
) -> tuple[list[bool], bool]:
    """Which carried values have lanes, and whether the lanes stop at different times."""
    lanes = [d is not None for d in carry]
    while True:
        where = [0 if has else None for has in lanes]
        _, found = _run(program, axis, [*constants, *where])
        _, (stops,) = _run(condition, axis, [*known, *where])
        per_lane = stops is not None
        grown = [has or per_lane or d is not None for has, d in zip(lanes, found, strict=True)]
        if grown == lanes:
            return lanes, per_lane
        lanes = grown


def _inputs(stage: Stage, program: Program, axis: Axis, dims: Sequence) -> list:
    return [
        stage.input(v.type if d is None else with_lanes(v.type, d, axis.size))
        for v, d in zip(program.inputs, dims, strict=True)
    ]


def _run(program: Program, axis: Axis, dims: Sequence) -> tuple[list, list]:
    """Trace ``program`` on lanes, to see which results have some."""
    stage = Stage(None, program.name)
    with running(stage):
        inputs = _inputs(stage, program, axis, dims)
        return batch(lambda *xs: evaluate(program, xs), axis, inputs, dims)


def _batched_condition(condition: Program, axis: Axis, dims: Sequence, per_lane: bool) -> Program:
    """Whether to go on: a boolean for each lane, or one for all."""
    stage = Stage(None, condition.name)
    inputs = _inputs(stage, condition, axis, dims)
    with running(stage):
        goes = _evaluate_lanes(condition, axis, inputs, dims, [0 if per_lane else None])
    return stage.finish(inputs, goes, condition.name)[0]


def _anyone(body: Program, constants: int) -> Program:
    """The condition of a loop whose carried values start with which lanes go on."""
    if "anyone" not in body.derived:
        stage = Stage(None, body.name)
        inputs = [stage.input(v.type) for v in body.inputs[constants:]]
        with running(stage):
            anyone = reduce_or(inputs[0], dims=(0,))
        body.derived["anyone"] = stage.finish(inputs, [anyone], body.name)[0]
    return body.derived["anyone"]


def _evaluate_lanes(
    program: Program, axis: Axis, args: Sequence, dims: Sequence, out: Sequence
) -> list:
    """The results of ``program``, with lanes leading where ``out`` says 0."""
    values, lanes = batch(lambda *xs: evaluate(program, xs), axis, args, dims)
    return [
        v if to is None else place_lanes(v, d, to, axis.size)
        for v, d, to in zip(values, lanes, out, strict=True)
    ]


def _batched_body(program: Program, axis: Axis, dims: Sequence, carry: Sequence) -> Program:
    """One turn of all lanes."""
    stage = Stage(None, program.name)
    inputs = _inputs(stage, program, axis, dims)
    with running(stage):
        values = _evaluate_lanes(program, axis, inputs, dims, carry)
    return stage.finish(inputs, values, program.name)[0]


def _body_of_differing_lanes(
    condition: Program, program: Program, axis: Axis, known: tuple, constants: tuple,
    carry: Sequence,
) -> Program:  # fmt: skip
    """One turn of the lanes that go on, and which of them go on; the others keep their values."""
    stage = Stage(None, program.name)
    tests = _inputs(stage, condition, axis, [*known, *carry])[: len(known)]
    inputs = _inputs(stage, program, axis, [*constants, *carry])
    fixed, state = inputs[: len(constants)], inputs[len(constants) :]
    goes = stage.input(ArrayType((axis.size,), BOOL))
    with running(stage):
        step, args, dims = _where(goes, program, inputs, [*constants, *carry])
        found = _evaluate_lanes(step, axis, args, dims, carry)
        kept = [_kept(goes, new, old) for new, old in zip(found, state, strict=True)]
        test, args, dims = _where(goes, condition, [*tests, *kept], [*known, *carry])
        (still,) = _evaluate_lanes(test, axis, args, dims, [0])
        still = and_(goes, still)
    return stage.finish([*tests, *fixed, goes, *state], [still, *kept], program.name)[0]


def _where(goes: Any, program: Program, args: Sequence, dims: Sequence) -> tuple:
    """``program`` with effects only in the lanes that go on, its arguments, and their lanes."""
    if program.effects:
        return conditional(program), [goes, *args], [0, *dims]
    return program, args, dims


def _kept(goes: Any, new: Any, old: Any) -> Any:
    shape = typeof(new).shape
    return select(broadcast(goes, shape=shape, dims=(0,)), new, old)


def _thread(
    rewrite: Callable, state: tuple, *xs: Any, condition: Program, program: Program, asked: int,
    parts: Parts,
) -> tuple:  # fmt: skip
    known, constants, carry = _divide(xs, asked, parts)
    count = len(state)
    *begun, goes = call(*state, *known, *carry, program=rewrite(condition, 0))
    body = _asking(rewrite(program, parts.constants), rewrite(condition, 0), asked, parts, count)
    fixed = [*known, *constants]
    out = loop(
        *fixed, goes, *begun, *carry, condition=_first(body, len(fixed)), program=body, asked=0,
        parts=Parts(len(fixed), 1 + count + parts.carried),
    )  # fmt: skip
    return out[1 : 1 + count], out[1 + count :]


def _asking(program: Program, condition: Program, asked: int, parts: Parts, count: int) -> Program:
    """A body that carries whether to go on, then a state, and asks at the end of each turn."""
    key = ("asking loop", condition)
    if key not in program.derived:
        stage = Stage(None, program.name)
        known = [stage.input(v.type) for v in condition.inputs[count : count + asked]]
        goes = stage.input(ArrayType((), BOOL))
        inputs = [stage.input(v.type) for v in program.inputs]
        with running(stage):
            found = evaluate(program, inputs)
            state, carry = found[:count], found[count:]
            *state, still = evaluate(condition, [*state, *known, *carry])
        fixed, moving = inputs[: parts.constants], inputs[parts.constants :]
        program.derived[key], _ = stage.finish(
            [*known, *fixed, goes, *moving], [still, *state, *carry], program.name
        )
    return program.derived[key]


def _first(body: Program, constants: int) -> Program:
    """The condition of a loop whose carried values start with whether to go on."""
    if "first" not in body.derived:
        inputs = [Var(v.type) for v in body.inputs[constants:]]
        body.derived["first"] = Program(inputs, [], inputs[:1], body.name)
    return body.derived["first"]


def _vary(
    *operands: frozenset, condition: Program, program: Program, asked: int, parts: Parts
) -> tuple:
    return _stable_varying(operands, condition, program, asked, parts)[0]


def _stable_varying(
    operands: Sequence[frozenset], condition: Program, program: Program, asked: int, parts: Parts
) -> tuple[tuple[frozenset, ...], frozenset]:
    """The axes over which the carry differs, and those over which the condition does."""
    known, constants, carry = _divide(operands, asked, parts)
    while True:
        (stops,) = varying_outputs(condition, [*known, *carry])
        found = varying_outputs(program, [*constants, *carry])
        grown = [c | v | stops for c, v in zip(carry, found, strict=True)]
        if grown == carry:
            return tuple(carry), stops
        carry = grown


loop: Callable = Primitive(
    "while",
    _type,
    _lower,
    linearize=_linearize,
    transpose=NoRule(
        "reverse mode would have to store every turn of a loop whose number of turns is not "
        "known; use scan, or fori_loop with static bounds"
    ),
    batch=_batch,
    vary=_vary,
    axes=lambda params: params["program"].axes | params["condition"].axes,
    thread=_thread,
    decides=lambda operands, **params: _stable_varying(operands, **params)[1],
    multi=True,
    doc="carry = program(constants, carry) while condition(constants, carry); stablehlo.while",
)
