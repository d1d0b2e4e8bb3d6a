"""The one loop over what a program does: a step for each equation, on the values of its operands.

What values are is up to the step: arrays and tracers where a program is run or traced, or what is
known of them, as over which axes they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from phalanx.base.source import replaying
from phalanx.core.program import Equation, Literal, Program, Var

Step = Callable[[Equation, tuple[Any, ...]], Any]  # to the result; a tuple where ``multi``


def _value_of(constant: Literal) -> Any:
    return constant.value


def values_of(
    program: Program, inputs: Iterable[Any], step: Step, of: Callable[[Literal], Any] = _value_of
) -> dict[Var, Any]:
    """The value of each variable of ``program``, where ``step`` gives those of an equation.

    That of a constant is what ``of`` says. While an equation is looked at, it is from its line of
    the user's that operations come.
    """
    values: dict[Var, Any] = dict(zip(program.inputs, inputs, strict=True))
    with replaying() as at:
        for e in program.equations:
            at(e.location)
            operands = tuple([values[a] if type(a) is Var else of(a) for a in e.inputs])
            out = step(e, operands)
            if e.prim.multi:
                values.update(zip(e.outputs, out, strict=True))
            else:
                values[e.outputs[0]] = out
    return values


def interpret(
    program: Program, inputs: Iterable[Any], step: Step, of: Callable[[Literal], Any] = _value_of
) -> list[Any]:
    """The same for the outputs alone, in order."""
    values = values_of(program, inputs, step, of)
    return [values[a] if type(a) is Var else of(a) for a in program.outputs]
