"""Branches on lanes that do not all take them: what the others do there has no consequence.

It has none for effects, which happen under a condition, nor for derivatives, for which the operands
are guarded. What lanes tell each other counts wherever it comes from: an operand of a collective is
as it is, and only its results are guarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base import dtypes
from phalanx.base.source import replaying
from phalanx.core.program import Equation, Program, Var
from phalanx.core.trace import current
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import BOOL
from phalanx.ops.guard import guarded
from phalanx.transforms.derive import keep, trace_closed
from phalanx.transforms.effects import conditional
from phalanx.transforms.simplify import live_equations
from phalanx.transforms.stage import evaluate

TAKEN = ArrayType((), BOOL)
Values = dict[Var, Any]


def where_taken(program: Program) -> Program:
    """``program`` with a first input that says whether this lane takes it."""
    return keep(program, "where taken", lambda: _where_taken(program))


def _where_taken(program: Program) -> Program:
    whole = with_condition(program)

    def run(taken: Any, *inputs: Any) -> tuple[list[Any], None]:
        used = set(program.outputs).union(*[e.inputs for e in program.equations])
        own = [
            _guard(taken, x) if v in used else x
            for v, x in zip(program.inputs, inputs, strict=True)
        ]
        if not program.axes:
            return evaluate(whole, [taken, *own]), None
        return _both(whole, taken, [taken, *inputs], [taken, *own]), None

    made = trace_closed(run, [TAKEN, *program.input_types], program.name).program
    return Program(made.inputs, live_equations(made), made.outputs, made.name)


def with_condition(program: Program) -> Program:
    """``program`` with a first input that says whether its effects happen, if it has some."""
    if program.effects:
        return conditional(program)
    return Program(
        [Var(TAKEN), *program.inputs], program.equations, program.outputs, program.name
    )


def _guard(taken: Any, x: Any) -> Any:
    return guarded(taken, x, x) if dtypes.is_inexact(typeof(x).dtype) else x


def _both(program: Program, taken: Any, shared: Sequence[Any], own: Sequence[Any]) -> list[Any]:
    """``program`` twice at once: of ``shared`` operands for what communicates, else of ``own``."""
    ours: Values = dict(zip(program.inputs, shared, strict=True))
    mine: Values = dict(zip(program.inputs, own, strict=True))
    feeding = _feeding(program)
    with replaying() as at:
        for e in program.equations:
            at(e.location)
            if e in feeding:
                _step(e, ours)
            if e in feeding and (e.axes or e.effects):
                mine.update([(v, _guard(taken, ours[v])) for v in e.outputs])
            else:
                _step(e, mine)
    return [mine[a] if type(a) is Var else a.value for a in program.outputs]


def _step(e: Equation, values: Values) -> None:
    operands = tuple([values[a] if type(a) is Var else a.value for a in e.inputs])
    out = current().process(e.prim, operands, e.params)
    values.update(zip(e.outputs, out if e.prim.multi else (out,), strict=True))


def _feeding(program: Program) -> set[Equation]:
    """The equations that communicate or act, and those whose results they need."""
    needed: set[Any] = set()
    feeding: set[Equation] = set()
    for e in reversed(program.equations):
        if e.axes or e.effects or not needed.isdisjoint(e.outputs):
            feeding.add(e)
            needed.update(e.inputs)
    return feeding
