"""``loop``: a program again and again, while another says so.

How often is not known before, so nothing can be stored for each run: a loop is differentiated
forward only, by a loop that carries the tangents along. Two things are its own: a derivative in two
halves runs the loop twice, and lanes may stop at different times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from phalanx.control.call import call
from phalanx.control.family import varying_results, with_subprograms
from phalanx.control.forward import dense, paired, placed, types_of
from phalanx.control.framed import bind
from phalanx.control.lanes import batch_rule, inner_dims, place_carry, stable_lanes
from phalanx.core.axes import Axis
from phalanx.core.frame import CARRY, Frame, Loop, Role
from phalanx.core.primitive import NoRule, Primitive
from phalanx.core.program import Program, Var
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import BOOL, broadcast
from phalanx.ops.bits import and_
from phalanx.ops.compare import select
from phalanx.ops.reduce import reduce_or
from phalanx.transforms.batch import Dims, batch, batch_program, place_lanes, with_lanes
from phalanx.transforms.derive import derive, keep, trace_closed
from phalanx.transforms.effects import State, conditional
from phalanx.transforms.stage import evaluate

Roles = tuple[Role, ...]


def _frame(params: dict[str, Any]) -> Frame:
    program = params["program"]
    outs = (CARRY,) * len(program.outputs)
    return Frame((program,), params["ins"], outs, Loop(None), params["condition"])


def _reframe(params: dict[str, Any], frame: Frame) -> dict[str, Any]:
    return {"condition": frame.condition, "program": frame.programs[0], "ins": frame.ins}


def _lower(b: Any, *xs: Any, condition: Program, program: Program, ins: Roles) -> list:
    frame = _frame({"condition": condition, "program": program, "ins": ins})
    return b.while_(
        frame.carried_in(xs),
        lambda b, *state: b.inline(condition, *frame.with_carry(xs, state)),
        lambda b, *state: b.inline(program, *frame.with_carry(xs, state)),
    )


def _linearize(active: tuple[bool, ...], *primals: Any, **params: Any) -> tuple:
    """The loop now, and once more with the tangents: what it does happens the first time."""
    results = loop(*primals, **params)
    pair = paired(_frame(params), active, quiet=True)

    def linear(*tangents: Any) -> tuple:
        operands = [*primals, *dense(tangents, types_of(primals), pair.active)]
        both = bind(loop, operands, params, pair.frame)
        return placed(both[len(results) :], pair.nonzero)

    return results, linear


# ---- vectorization ------------------------------------------------------------------------------


def _batch(axis: Axis, values: Sequence, dims: Dims, **params: Any) -> tuple:
    frame, condition = _frame(params), params["condition"]
    inner = inner_dims(frame, dims, stable_lanes(frame, axis, dims))
    if batch_program(condition, axis, inner).about == (None,):
        return _batch_alike(axis, values, dims, **params)
    every = [True] * len(frame.outs)
    operands = place_carry(frame, values, dims, every, axis.size)
    inner = inner_dims(frame, dims, every)
    running = call(*operands, program=batch_program(condition, axis, inner, (True,)).program)
    lanes = keep(
        frame.programs[0],
        ("lanes that differ", frame.key, axis, inner),
        lambda: _differing(frame, axis, inner),
    )
    return bind(loop, [*running, *operands], params, lanes)[1:], (0,) * len(every)


_batch_alike = batch_rule(lambda: loop)


def _differing(frame: Frame, axis: Axis, inner: Dims) -> Frame:
    """A loop for lanes that stop at different times.

    It carries which of them go on, before the other values, and runs until none does; lanes that
    have stopped keep their values.
    """
    (program,), condition = frame.programs, frame.condition
    assert condition is not None
    first = (0,) * len(program.outputs)

    def run(running: Any, *inputs: Any) -> tuple[list[Any], None]:
        step, args, places = _where(running, program, inputs, inner)
        new = _on_lanes(step, axis, args, places, first)
        old = frame.carried_in(inputs)
        kept = [_kept(running, n, o) for n, o in zip(new, old, strict=True)]
        test, args, places = _where(running, condition, frame.with_carry(inputs, kept), inner)
        (still,) = _on_lanes(test, axis, args, places, (0,))
        return [and_(running, still), *kept], None

    def anyone(running: Any, *_: Any) -> tuple[list[Any], None]:
        return [reduce_or(running, dims=(0,))], None

    types = [
        t if d is None else with_lanes(t, d, axis.size)
        for t, d in zip(program.input_types, inner, strict=True)
    ]
    types = [ArrayType((axis.size,), BOOL), *types]
    return replace(
        frame,
        programs=(trace_closed(run, types, program.name).program,),
        condition=trace_closed(anyone, types, condition.name).program,
        ins=(CARRY, *frame.ins),
        outs=(CARRY, *frame.outs),
    )


def _on_lanes(
    program: Program, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], to: Sequence[int]
) -> list[Any]:
    """The results of ``program``, with their lanes where ``to`` says."""
    values, places = batch(lambda *xs: evaluate(program, xs), axis, args, dims)
    return [
        place_lanes(v, d, t, axis.size) for v, d, t in zip(values, places, to, strict=True)
    ]


def _where(running: Any, program: Program, args: Sequence, dims: Sequence) -> tuple:
    """``program`` with effects only in the lanes that go on, its arguments, and their lanes."""
    if program.effects:
        return conditional(program), [running, *args], [0, *dims]
    return program, args, dims


def _kept(running: Any, new: Any, old: Any) -> Any:
    shape = typeof(new).shape
    return select(broadcast(running, shape=shape, dims=(0,)), new, old)


# ---- effects ------------------------------------------------------------------------------------


def _carry_state(rewrite: State, state: Any, *operands: Any, **params: Any) -> tuple:
    """The condition is asked at the end of each run, and whether to go on is carried."""
    frame = _frame(params)
    (program,), condition = frame.programs, frame.condition
    assert condition is not None
    ask, step = rewrite(condition), rewrite(program)

    def run(goes_on: Any, state: Any, *inputs: Any) -> tuple[list[Any], None]:
        state, *carry = evaluate(step, [state, *inputs])
        state, still = evaluate(ask, [state, *frame.with_carry(inputs, carry)])
        return [still, state, *carry], None

    types = [ArrayType((), BOOL), rewrite.type, *program.input_types]
    body = derive(step, ("asking", ask, frame.ins), run, types).program
    inputs = [Var(t) for t in types]
    carrying = replace(
        frame,
        programs=(body,),
        condition=Program(inputs, [], inputs[:1], condition.name),
        ins=(CARRY, CARRY, *frame.ins),
        outs=(CARRY, CARRY, *frame.outs),
    )
    begun, goes_on = call(state, *operands, program=ask)
    _, after, *results = bind(loop, [goes_on, begun, *operands], params, carrying)
    return after, results


loop: Primitive = with_subprograms(
    "while",
    _lower,
    _frame,
    _reframe,
    linearize=_linearize,
    transpose=NoRule(
        "reverse mode would have to store every iteration of a loop whose number of iterations is "
        "not known; use scan, or fori_loop with static bounds"
    ),
    batch=_batch,
    carry_state=_carry_state,
    decides=lambda operands, **params: varying_results(_frame(params), operands)[1],
    doc="carry = program(fixed, carry) while condition(fixed, carry); stablehlo.while",
)
