"""Branches on lanes that do not all take them: what the others do there has no consequence.

It has none for effects, which happen under a condition, nor for derivatives, for which the operands
are guarded. What lanes tell each other counts wherever it comes from: an operand of a collective is
as it is, and only its results are guarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base import dtypes
from phalanx.core.interpret import interpret, values_of
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Equation, Program, Var
from phalanx.core.trace import current
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.domains import BOOL
from phalanx.primitives.guard import guarded
from phalanx.transforms.dce import live_equations
from phalanx.transforms.derive import trace_closed
from phalanx.transforms.effects import conditional
from phalanx.transforms.stage import evaluate

TAKEN = ArrayType((), BOOL)


def where_taken(program: Program) -> Program:
    """``program`` with a first input that says whether this lane takes it."""
    return memoize_on(program, "where taken", lambda: _where_taken(program))


def _where_taken(program: Program) -> Program:
    conditioned = with_condition(program)

    def run(taken: Any, *inputs: Any) -> tuple[list[Any], None]:
        used = set(program.outputs).union(*[e.inputs for e in program.equations])
        own = [
            _guard(taken, x) if v in used else x
            for v, x in zip(program.inputs, inputs, strict=True)
        ]
        if not program.axes:
            return evaluate(conditioned, [taken, *own]), None
        return _both(conditioned, taken, [taken, *inputs], [taken, *own]), None

    masked = trace_closed(run, [TAKEN, *program.input_types], program.name).program
    return masked.update(equations=live_equations(masked))


def with_condition(program: Program) -> Program:
    """``program`` with a first input that says whether its effects happen, if it has some."""
    if program.effects:
        return conditional(program)
    return program.update(inputs=[Var(TAKEN), *program.inputs])


def _guard(taken: Any, x: Any) -> Any:
    return guarded(taken, x, x) if dtypes.is_inexact(typeof(x).dtype) else x


def _both(program: Program, taken: Any, shared: Sequence[Any], own: Sequence[Any]) -> list[Any]:
    """``program`` twice at once: of ``shared`` operands for what communicates, else of ``own``."""
    process = current().process

    def run(e: Equation, operands: tuple[Any, ...]) -> Any:
        return process(e.prim, operands, e.params)

    feeding = program.update(equations=live_equations(program.update(outputs=()), _communicates))
    ours = values_of(feeding, shared, run)

    def mine(e: Equation, operands: tuple[Any, ...]) -> Any:
        if not _communicates(e):
            return run(e, operands)
        results = tuple([_guard(taken, ours[v]) for v in e.outputs])
        return results if e.prim.multi else results[0]

    return interpret(program, own, mine)


def _communicates(e: Equation) -> bool:
    """Whether lanes do it together, or it acts on the outside."""
    return bool(e.axes or e.effects)
