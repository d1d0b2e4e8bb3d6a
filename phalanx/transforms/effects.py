"""Effects in programs: calls to the host that happen under a condition, or in order.

Both come from one treatment. A few values, the state, go through a program from effect to
effect, into sub-programs and out of them. A condition is a state that stays as it is; a token
is one that every call takes from the call before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.base.source import replaying
from phalanx.core.primitive import ORDERED
from phalanx.core.program import Equation, Program, Var
from phalanx.core.trace import running
from phalanx.core.types import ArrayType
from phalanx.ops.basis import BOOL, I32
from phalanx.ops.bits import and_
from phalanx.ops.callback import host_call, with_operand
from phalanx.transforms.stage import Stage


@dataclass(frozen=True, slots=True)
class Threading:
    """What the state is, which effects it goes through, and how a call takes and gives it."""

    name: str
    type: ArrayType
    concerns: Callable[[frozenset], bool]
    call: Callable[[Any, Sequence, dict[str, Any]], tuple[Any, Sequence]]

    def __call__(self, program: Program, at: int = 0) -> Program:
        """``program`` with the state as its input number ``at`` and as its first output."""
        key = (self.name, at)
        if key not in program.derived:
            stage = Stage(None, program.name)
            before = [stage.input(v.type) for v in program.inputs[:at]]
            state = stage.input(self.type)
            after = [stage.input(v.type) for v in program.inputs[at:]]
            with running(stage):
                state_out, outputs = self.run(program, state, [*before, *after])
            inputs = [*before, state, *after]
            program.derived[key] = stage.finish(inputs, [state_out, *outputs], program.name)[0]
        return program.derived[key]

    def run(self, program: Program, state: Any, args: Sequence[Any]) -> tuple[Any, list]:
        """The state after ``program``, and its results."""
        values: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
        with replaying() as at:
            for e in program.equations:
                at(e.location)
                operands = [values[a] if type(a) is Var else a.value for a in e.inputs]
                state, out = self._step(e, state, operands)
                values.update(zip(e.outputs, out if e.prim.multi else (out,), strict=True))
        return state, [values[a] if type(a) is Var else a.value for a in program.outputs]

    def _step(self, e: Equation, state: Any, operands: list) -> tuple[Any, Any]:
        if not self.concerns(e.effects):
            return state, e.prim(*operands, **e.params)
        if e.prim is host_call:
            return self.call(state, operands, e.params)
        (state,), out = e.prim.rule("thread")(self, (state,), *operands, **e.params)
        return state, out


def _if_called(condition: Any, operands: Sequence, params: dict[str, Any]) -> tuple:
    called, *rest = operands
    return condition, host_call(and_(condition, called), *rest, **params)


def _after_the_last(token: Any, operands: Sequence, params: dict[str, Any]) -> tuple:
    called, *rest = operands
    changed = {
        "out_types": (TOKEN.type, *params["out_types"]),
        "levels": with_operand(params["levels"], 1),
        "token": True,
    }
    token, *out = host_call(called, token, *rest, **{**params, **changed})
    return token, out


def _never(state: Any, operands: Sequence, params: dict[str, Any]) -> tuple:
    if params["out_types"]:
        host = params["host"]
        raise ValueError(
            f"{host.name}: a loop that is differentiated runs twice, once for its results and "
            f"once for their derivatives, and the call at {host.location} must not; take what it "
            "gives out of the loop, or use scan or fori_loop with static bounds"
        )
    return state, ()


def _in_order(effects: frozenset) -> bool:
    return ORDERED in effects


CONDITION = Threading("conditional", ArrayType((), BOOL), bool, _if_called)
SILENCE = Threading("silent", ArrayType((), BOOL), bool, _never)
TOKEN = Threading("in order", ArrayType((), I32), _in_order, _after_the_last)


def silent(program: Program) -> Program:
    """``program`` without its effects, to run it a second time; has a first input of no use."""
    return _without_state(SILENCE(program))


def conditional(program: Program) -> Program:
    """``program`` with a first input that says whether its effects happen."""
    return _without_state(CONDITION(program))


def _without_state(program: Program) -> Program:
    return Program(program.inputs, program.equations, program.outputs[1:], program.name)


def in_order(program: Program) -> Program:
    """``program`` with every ordered call after the one before it."""
    if ORDERED not in program.effects:
        return program
    key = "in order"
    if key not in program.derived:
        stage = Stage(None, program.name)
        inputs = [stage.input(v.type) for v in program.inputs]
        with running(stage):
            _, outputs = TOKEN.run(program, np.int32(0), inputs)
        program.derived[key] = stage.finish(inputs, outputs, program.name)[0]
    return program.derived[key]
