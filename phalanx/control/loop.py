"""``loop``: a program again and again, while another says so.

How often is not known before, so nothing can be stored for each run: a loop is differentiated
forward only, by a loop that carries the tangents along. Two things are its own: a derivative in two
halves runs the loop twice, and lanes may stop at different times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from phalanx.control.call import call
from phalanx.control.family import varying_results, with_subprograms
from phalanx.control.forward import dense, paired, types_of
from phalanx.control.framed import bind_frame
from phalanx.control.lanes import anyone, batch_rule, inner_dims, place_carry, stable_lanes
from phalanx.core.axes import Axis
from phalanx.core.builder import Body, Builder, Value
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Derivative, NoRule, Primitive, with_zeros
from phalanx.core.program import Frame, Program, Var
from phalanx.core.roles import CARRY, Roles
from phalanx.core.runs import Loop, Marks
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import broadcast
from phalanx.primitives.bits import and_
from phalanx.primitives.compare import select
from phalanx.primitives.domains import BOOL
from phalanx.transforms.batch import Dims, batch_program, on_lanes, with_lanes
from phalanx.transforms.derive import derive, trace_closed
from phalanx.transforms.effects import Carried, conditional
from phalanx.transforms.replication import Varying
from phalanx.transforms.stage import evaluate


def _frame(*, program: Program, condition: Program, ins: Roles) -> Frame:
    outs = (CARRY,) * len(program.outputs)
    return Frame((program,), ins, outs, Loop(None), condition)


def _lower(b: Builder, *xs: Value, program: Program, condition: Program, ins: Roles) -> list[Value]:
    frame = _frame(program=program, condition=condition, ins=ins)

    def body(program: Program) -> Body:
        def write(b: Builder, *state: Value) -> list[Value]:
            return b.inline(program, *frame.with_carried_in(xs, state))

        return write

    return b.while_(frame.carried_in(xs), body(condition), body(program))


def _linearize(active: Marks, *primals: Any, **params: Any) -> Derivative:
    """The loop now, and once more with the tangents: what it does happens the first time."""
    results = loop(*primals, **params)
    pair = paired(_frame(**params), active, quiet=True)

    def linear(*tangents: Any) -> tuple[Any, ...]:
        operands = [*primals, *dense(tangents, types_of(primals), pair.active)]
        both = bind_frame(loop, operands, params, pair.frame)
        return with_zeros(both[len(results) :], pair.nonzero)

    return results, linear


# ---- vectorization ------------------------------------------------------------------------------


def _batch(
    axis: Axis, values: Sequence[Any], dims: Dims, **params: Any
) -> tuple[tuple[Any, ...], Dims]:
    frame, condition = _frame(**params), params["condition"]
    inner = inner_dims(frame, dims, stable_lanes(frame, axis, dims))
    if batch_program(condition, axis, inner).about == (None,):
        return _batch_alike(axis, values, dims, **params)
    all_carried = [True] * len(frame.outs)
    operands = place_carry(frame, values, dims, all_carried, axis)
    inner = inner_dims(frame, dims, all_carried)
    running = call(*operands, program=batch_program(condition, axis, inner, (True,)).program)
    lanes = memoize_on(
        frame.programs[0],
        ("lanes that differ", frame.key, axis, inner),
        lambda: _differing(frame, axis, inner),
    )
    goes_on = anyone(axis, running, _together(frame, axis))
    results = bind_frame(loop, [*goes_on, *running, *operands], params, lanes)
    return results[2:], (0,) * len(all_carried)


_batch_alike = batch_rule(lambda: loop)


def _together(frame: Frame, axis: Axis) -> bool:
    """Whether lanes meet in each run, and so must agree whether there is another one."""
    return axis.together or any(axis.name in p.axes for p in frame.subprograms)


def _differing(frame: Frame, axis: Axis, inner: Dims) -> Frame:
    """A loop for lanes that stop at different times.

    It carries whether any of them goes on and which, before the other values, and runs until none
    does; lanes that have stopped keep their values.
    """
    (program,), condition = frame.programs, frame.condition
    assert condition is not None

    def run(_: Any, running: Any, *inputs: Any) -> tuple[list[Any], None]:
        new = _while_running(program, axis, running, inputs, inner)
        old = frame.carried_in(inputs)
        carried = [_selected(running, n, o) for n, o in zip(new, old, strict=True)]
        inputs = tuple(frame.with_carried_in(inputs, carried))
        (still,) = _while_running(condition, axis, running, inputs, inner)
        still = and_(running, still)
        return [*anyone(axis, [still], _together(frame, axis)), still, *carried], None

    types = [
        t if d is None else with_lanes(t, d, axis)
        for t, d in zip(program.input_types, inner, strict=True)
    ]
    types = [ArrayType((), BOOL), ArrayType((axis.size,), BOOL), *types]
    return _carrying_its_condition(frame, trace_closed(run, types, program.name).program)


def _carrying_its_condition(frame: Frame, body: Program) -> Frame:
    """A loop of ``body``, which carries two values more: first whether there is another run."""
    inputs = [Var(t) for t in body.input_types]
    return replace(
        frame,
        programs=(body,),
        condition=body.update(inputs=inputs, equations=[], outputs=inputs[:1]),
        ins=(CARRY, CARRY, *frame.ins),
        outs=(CARRY, CARRY, *frame.outs),
    )


def _while_running(
    program: Program, axis: Axis, running: Any, inputs: Sequence[Any], dims: Dims
) -> list[Any]:
    """The results of ``program`` on all lanes; its effects only in those that go on."""
    if program.effects:
        return on_lanes(conditional(program), axis, [running, *inputs], [0, *dims])
    return on_lanes(program, axis, inputs, dims)


def _selected(running: Any, new: Any, old: Any) -> Any:
    shape = typeof(new).shape
    return select(broadcast(running, shape=shape, dims=(0,)), new, old)


# ---- effects ------------------------------------------------------------------------------------


def _carry_state(
    rewrite: Carried, state: Any, *operands: Any, **params: Any
) -> tuple[Any, list[Any]]:
    """The condition is evaluated at the end of each run, and its result carried."""
    frame = _frame(**params)
    (program,), condition = frame.programs, frame.condition
    assert condition is not None
    test, step = rewrite(condition), rewrite(program)

    def run(_: Any, state: Any, *inputs: Any) -> tuple[list[Any], None]:
        state, *carry = evaluate(step, [state, *inputs])
        state, still = evaluate(test, [state, *frame.with_carried_in(inputs, carry)])
        return [still, state, *carry], None

    types = [ArrayType((), BOOL), rewrite.type, *program.input_types]
    body = derive(step, ("and its condition", frame.key), run, types).program
    carrying = _carrying_its_condition(frame, body)
    begun, keep_going = call(state, *operands, program=test)
    _, after, *results = bind_frame(loop, [keep_going, begun, *operands], params, carrying)
    return after, results


def _decides(operands: Sequence[Varying], **params: Any) -> Varying:
    return varying_results(_frame(**params), operands)[1]


loop: Primitive = with_subprograms(
    "while",
    _lower,
    _frame,
    linearize=_linearize,
    transpose=NoRule(
        # up to "stop values" the words are the field's, for matching
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values: it would have to store every iteration of a loop whose number "
        "of iterations is not known; use scan, or fori_loop with static bounds"
    ),
    batch=_batch,
    carry_state=_carry_state,
    decides=_decides,
    doc="carry = program(fixed, carry) while condition(fixed, carry); stablehlo.while",
)
