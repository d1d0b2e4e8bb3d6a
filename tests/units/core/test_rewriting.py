"""Programs rewritten: with other parts, other names, other sub-programs; and walked over."""

from __future__ import annotations

from typing import Any

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.control.loop import loop
from phalanx.core.interpret import interpret, values_of
from phalanx.core.program import Equation, Program, Var
from phalanx.core.roles import CARRY, FIXED


def _program() -> Program:
    return phalanx.make_program(lambda x, y: jnp.sin(x) * y + 2.0)(jnp.ones(3), jnp.ones(3))


def _equations_with_programs() -> list[Equation]:
    """One of each kind: a call, a branch, both loops, lanes."""

    def many(x: Any) -> Any:
        x = phalanx.jit(jnp.sin)(x)
        x = lax.cond(x[0] > 0, jnp.cos, jnp.tan, x)
        x = lax.while_loop(lambda x: x[0] < 1, lambda x: x + 1, x)
        x = lax.scan(lambda c, r: (c + r, c), x, jnp.ones((2, 3)))[0]
        return phalanx.pmap(lambda r: r * 2)(x)

    program = phalanx.make_program(many)(jnp.ones(3))
    return [e for e in program.equations if e.frame is not None]


def test_what_is_not_said_stays() -> None:
    program = _program()
    e = program.equations[0]
    other = e.update(outputs=(Var(e.outputs[0].type),))
    assert (other.prim, other.inputs, other.params) == (e.prim, e.inputs, e.params)
    assert other.location is e.location and other.outputs != e.outputs
    fewer = program.update(outputs=())
    assert fewer.inputs == program.inputs and fewer.equations is program.equations
    assert fewer.outputs == () and fewer.name == program.name


def test_other_names_reach_operands_and_outputs() -> None:
    program = _program()
    x, y = program.inputs
    swapped = program.renamed({x: y, y: x})
    same = swapped.update(inputs=(y, x))
    assert str(same) == str(program)


def test_a_frame_goes_back_into_the_parameters_that_it_comes_from() -> None:
    equations = _equations_with_programs()
    assert {e.prim.name for e in equations} == {"call", "cond", "while", "scan", "mapped"}
    for e in equations:
        frame = e.frame
        assert frame is not None
        assert frame.to_params(e.params) == e.params
        changed = frame.rewritten(lambda p: p.update(outputs=p.outputs))
        assert changed != frame and e.reframed(changed).frame == changed


@pytest.mark.parametrize("e", _equations_with_programs(), ids=lambda e: e.prim.name)
def test_programs_take_more_operands_before_those_that_they_see(e: Equation) -> None:
    frame = e.frame
    assert frame is not None
    more = Var(e.inputs[0].type)
    role = CARRY if frame.is_loop else FIXED

    def taking(program: Program) -> Program:
        return program.update(inputs=[Var(more.type), *program.inputs])

    wider = frame.rewritten(taking, (role,))
    assert wider.body_roles == (role, *frame.body_roles)
    operands = frame.prepended([more], e.inputs)
    assert wider.body_operands(operands) == [more, *frame.body_operands(e.inputs)]
    assert wider.choices(operands) == frame.choices(e.inputs)


def test_an_operation_alone_and_what_is_more_than_one() -> None:
    e = _program().equations[0]
    alone = Program.of_one(e.prim, [a.type for a in e.inputs], e.params, "alone")
    assert alone.only is alone.equations[0]
    assert alone.output_types == (e.outputs[0].type,)
    assert _program().only is None
    assert alone.update(outputs=alone.inputs).only is None


def test_a_walk_sees_each_program_once_and_stops_where_it_is_told() -> None:
    inner = phalanx.jit(lambda x: jnp.sin(x) + 1)
    program = phalanx.make_program(lambda x: inner(inner(x)))(jnp.ones(3))
    names = [e.prim.name for e in program.walk()]
    assert names.count("call") == 2 and names.count("sin") == 1
    assert [e.prim.name for e in program.walk(lambda e: False)] == ["call", "call"]


def test_a_step_gives_the_values_of_an_equation() -> None:
    program = _program()

    def depth(e: Equation, operands: tuple[int, ...]) -> int:
        return 1 + max(operands)

    assert interpret(program, [0, 5], depth, lambda constant: 0) == [7]
    depths = values_of(program, [0, 5], depth, lambda constant: 0)
    assert [depths[e.outputs[0]] for e in program.equations] == [1, 6, 7]


def test_a_loop_may_be_its_own_condition_where_lanes_stop_at_different_times() -> None:
    bools = phalanx.make_program(jnp.logical_not)(jnp.array(True))
    every = (CARRY,)

    def run(x: Any) -> Any:
        return loop(x, condition=bools, program=bools, ins=every)[0]

    assert phalanx.vmap(run)(jnp.array([True, False])).tolist() == [True, True]
