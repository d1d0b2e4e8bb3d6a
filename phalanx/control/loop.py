"""``loop``: a program again and again, while another says so.

The number of turns is not known before, so nothing can be stored for each turn: a loop is
differentiated forward only, by a loop that carries the tangents along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.control.scan_linear import Parts, stable_halves
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO, NoRule, Primitive
from phalanx.core.program import Program
from phalanx.core.trace import running
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import broadcast, instantiate
from phalanx.ops.compare import select
from phalanx.ops.reduce import reduce_or
from phalanx.spmd.replication import varying_outputs
from phalanx.transforms.batch import batch, place_lanes, with_lanes
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
        primal = evaluate(halves.primal, [*extra, *values, *state])
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
        outputs = evaluate(condition, inputs)
    return stage.finish([*inputs, *rest], outputs, condition.name)[0]


# ---- vectorization ------------------------------------------------------------------------------


def _batch(
    axis: Axis, values: Sequence, dims: tuple, *, condition: Program, program: Program,
    asked: int, parts: Parts,
) -> tuple:  # fmt: skip
    known, constants, carry = _divide(dims, asked, parts)
    made = _batched(condition, program, axis, tuple(known), tuple(constants), tuple(carry))
    test, body, lanes, per_lane = made
    first, fixed, start = _divide(values, asked, parts)
    placed = [
        place_lanes(v, d, 0, axis.size) if has else v
        for v, d, has in zip(start, carry, lanes, strict=True)
    ]
    # where lanes stop at different times the body asks the condition, too
    fixed = [*first, *fixed] if per_lane else fixed
    found = loop(
        *first, *fixed, *placed,
        condition=test, program=body, asked=asked, parts=Parts(len(fixed), len(placed)),
    )  # fmt: skip
    return found, tuple(0 if has else None for has in lanes)


def _batched(
    condition: Program, program: Program, axis: Axis, known: tuple, constants: tuple, carry: tuple
) -> tuple[Program, Program, tuple[bool, ...], bool]:
    key = ("batch loop", condition, axis, known, constants, carry)
    if key not in program.derived:
        lanes, per_lane = _stable_lanes(condition, program, axis, known, constants, carry)
        where = [0 if has else None for has in lanes]
        test = _batched_condition(condition, axis, [*known, *where])
        body = _batched_body(condition, program, axis, known, constants, where, per_lane)
        program.derived[key] = test, body, tuple(lanes), per_lane
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


def _batched_condition(condition: Program, axis: Axis, dims: Sequence) -> Program:
    """Whether any lane goes on."""
    stage = Stage(None, condition.name)
    inputs = _inputs(stage, condition, axis, dims)
    with running(stage):
        (goes,), (lanes,) = batch(lambda *xs: evaluate(condition, xs), axis, inputs, dims)
        anyone = goes if lanes is None else reduce_or(goes, dims=(lanes,))
    return stage.finish(inputs, [anyone], condition.name)[0]


def _batched_body(
    condition: Program, program: Program, axis: Axis, known: tuple, constants: tuple,
    carry: Sequence, per_lane: bool,
) -> Program:  # fmt: skip
    """One turn of all lanes; a lane that has stopped keeps its values."""
    stage = Stage(None, program.name)
    tests = _inputs(stage, condition, axis, [*known, *carry])[: len(known)] if per_lane else []
    inputs = _inputs(stage, program, axis, [*constants, *carry])
    fixed, state = inputs[: len(constants)], inputs[len(constants) :]
    with running(stage):
        values, lanes = batch(
            lambda *xs: evaluate(program, xs), axis, inputs, [*constants, *carry]
        )
        placed = [
            v if at is None else place_lanes(v, d, 0, axis.size)
            for v, d, at in zip(values, lanes, carry, strict=True)
        ]
        if per_lane:
            (goes,), (at,) = batch(
                lambda *xs: evaluate(condition, xs), axis, [*tests, *state], [*known, *carry]
            )
            goes = place_lanes(goes, at, 0, axis.size)
            placed = [_kept(goes, new, old) for new, old in zip(placed, state, strict=True)]
    return stage.finish([*tests, *fixed, *state], placed, program.name)[0]


def _kept(goes: Any, new: Any, old: Any) -> Any:
    shape = typeof(new).shape
    return select(broadcast(goes, shape=shape, dims=(0,)), new, old)


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
    linearize_some=_linearize,
    transpose=NoRule(
        "reverse mode would have to store every turn of a loop whose number of turns is not "
        "known; use scan, or fori_loop with static bounds"
    ),
    batch=_batch,
    vary=_vary,
    axes=lambda params: params["program"].axes | params["condition"].axes,
    decides=lambda operands, **params: _stable_varying(operands, **params)[1],
    multi=True,
    doc="carry = program(constants, carry) while condition(constants, carry); stablehlo.while",
)
