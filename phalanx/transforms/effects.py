"""Effects in programs: calls to the host that happen under a condition, or in order.

Both come from one treatment. A value, the state, goes through a program from effect to effect, into
sub-programs and out of them. A condition is a state that stays as it is; a token is one that every
call takes from the call before it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.core.interpret import interpret
from phalanx.core.primitive import ORDERED
from phalanx.core.program import Equation, Program
from phalanx.core.types import ArrayType
from phalanx.primitives.bits import and_
from phalanx.primitives.callback import host_call, with_operand
from phalanx.primitives.domains import BOOL, I32
from phalanx.transforms.derive import derive


class Carried(Struct, frozen=True):
    """What goes through a program from equation to equation; some of them change it."""

    name: Hashable
    type: ArrayType

    def __call__(self, program: Program) -> Program:
        """``program`` with the state as its first input and as its first output."""

        def carried(state: Any, *inputs: Any) -> tuple[list[Any], None]:
            after, outputs = self.run(program, state, inputs)
            return [after, *outputs], None

        return derive(program, self.name, carried, [self.type, *program.input_types]).program

    def run(self, program: Program, state: Any, args: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The state after ``program``, and its results."""

        def step(e: Equation, operands: tuple[Any, ...]) -> Any:
            nonlocal state
            state, out = self.step(e, state, operands)
            return out

        results = interpret(program, args, step)
        return state, results

    def step(self, e: Equation, state: Any, operands: tuple[Any, ...]) -> tuple[Any, Any]:
        """The state after an equation, and its results."""
        raise NotImplementedError


class State(Carried, frozen=True):
    """What goes from effect to effect, which effects it goes through, and how a call takes it."""

    concerns: Callable[[frozenset[Any]], bool]
    call: Callable[[Any, Equation, Sequence[Any]], tuple[Any, Sequence[Any]]]

    def step(self, e: Equation, state: Any, operands: tuple[Any, ...]) -> tuple[Any, Any]:
        """The state after an equation, and its results."""
        if not self.concerns(e.effects):
            return state, e.prim(*operands, **e.params)
        if e.prim.effects.called is not None:
            return self.call(state, e, operands)
        return e.prim.rule("carry_state", e.prim.effects)(self, state, *operands, **e.params)


def _if_called(condition: Any, e: Equation, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    called, *rest = operands
    return condition, e.prim(and_(condition, called), *rest, **e.params)


def _after_the_last(token: Any, e: Equation, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    called, *rest = operands
    changed = {
        "out_types": (TOKEN.type, *e.params["out_types"]),
        "levels": with_operand(e.params["levels"], 1),
        "token": True,
    }
    token, *out = host_call(called, token, *rest, **{**e.params, **changed})
    return token, out


def _never(state: Any, e: Equation, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    if e.outputs:
        raise ValueError(
            f"{e.prim.rule('called', e.prim.effects)(**e.params)}: a loop that is differentiated "
            "runs twice, once for its results and "
            f"once for their derivatives, and the call at {e.location} must not; take what it "
            "gives out of the loop, or use scan or fori_loop with static bounds"
        )
    return state, []


def _is_ordered(effects: frozenset[Any]) -> bool:
    return ORDERED in effects


CONDITION = State("conditional", ArrayType((), BOOL), bool, _if_called)
SILENCE = State("silent", ArrayType((), BOOL), bool, _never)
TOKEN = State("in order", ArrayType((), I32), _is_ordered, _after_the_last)


def silent(program: Program) -> Program:
    """``program`` without its effects, to run it a second time."""
    return _from(SILENCE, np.bool_(False), program) if program.effects else program


def _from(state: State, start: Any, program: Program) -> Program:
    """``program`` with a state that starts as ``start``, and that nobody sees."""

    def run(*inputs: Any) -> tuple[list[Any], None]:
        return state.run(program, start, inputs)[1], None

    return derive(program, ("from", state.name), run, program.input_types).program


def conditional(program: Program) -> Program:
    """``program`` with a first input that says whether its effects happen."""
    threaded = CONDITION(program)
    return threaded.update(outputs=threaded.outputs[1:])


def with_ordered_calls(program: Program) -> Program:
    """``program`` with every ordered call after the one before it."""
    return _from(TOKEN, np.int32(0), program) if ORDERED in program.effects else program
