"""Reverse derivatives: run a linear program backwards, from cotangents out to cotangents in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from phalanx.base.source import replaying
from phalanx.core.primitive import ZERO, Linear
from phalanx.core.program import Equation, Program, Var
from phalanx.core.trace import current
from phalanx.ops.basis import add

Values = dict[Any, Any]  # by the variables of a program
Linears = dict[Any, Linear]  # likewise


def backward(program: Program, operands: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The cotangents of the inputs given as ``Linear``, from those of the outputs.

    ``operands`` has one entry per input of the program: a value, or ``Linear`` for an input
    in which the program is linear. ``cts`` has one per output; entries in and out may be
    ``ZERO``.
    """
    values: Values = {}
    linear: Linears = {}
    for var, operand in zip(program.inputs, operands, strict=True):
        if isinstance(operand, Linear):
            linear[var] = operand
        else:
            values[var] = operand
    pending = _forward(program, values, linear)
    cotangents: Values = {}
    for atom, ct in zip(program.outputs, cts, strict=True):
        if atom in linear:
            _accumulate(cotangents, atom, ct)
    with replaying() as at:
        for equation in reversed(pending):
            at(equation.location)
            _transpose_equation(equation, values, linear, cotangents)
    return [cotangents.get(v, ZERO) for v in program.inputs if v in linear]


def _forward(program: Program, values: Values, linear: Linears) -> list[Equation]:
    """Run what does not depend on the linear inputs; return the equations that do."""
    pending: list[Equation] = []
    trace = current()
    with replaying() as at:
        for e in program.equations:
            if not linear.keys().isdisjoint(e.inputs):
                pending.append(e)
                linear.update([(v, Linear(v.type)) for v in e.outputs])
                continue
            at(e.location)
            operands = tuple([values[a] if type(a) is Var else a.value for a in e.inputs])
            out = trace.process(e.prim, operands, e.params)
            values.update(zip(e.outputs, out if e.prim.multi else (out,), strict=True))
    return pending


def _transpose_equation(
    e: Equation, values: Values, linear: Linears, cotangents: Values
) -> None:
    cts = tuple([cotangents.pop(v, ZERO) for v in e.outputs])
    if all([ct is ZERO for ct in cts]):
        return
    operands = [
        linear[a] if a in linear else values[a] if type(a) is Var else a.value for a in e.inputs
    ]
    results = e.prim.rule("transpose")(cts if e.prim.multi else cts[0], *operands, **e.params)
    for atom, ct in zip(e.inputs, results, strict=True):
        if atom in linear:
            if ct is None:
                _refuse_nonlinear(e)
            _accumulate(cotangents, atom, ct)


def _refuse_nonlinear(e: Equation) -> NoReturn:
    raise TypeError(
        f"{e.prim.name}: at {e.location} its operands depend on the same tangents or inputs, so "
        "the function is not linear in them and cannot be transposed. Give linear_transpose a "
        "linear function; let a rule of custom_jvp compute values and tangents in loops of their "
        "own"
    )


def _accumulate(cotangents: Values, atom: Any, ct: Any) -> None:
    if ct is not ZERO:
        cotangents[atom] = add(cotangents[atom], ct) if atom in cotangents else ct
