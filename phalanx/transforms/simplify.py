"""Dead code: keep the equations and captured inputs that the outputs depend on."""

from __future__ import annotations

from collections.abc import Iterable

from phalanx.core.program import Equation, Program, Var


def without_effects(program: Program) -> list[Equation]:
    """The equations of ``program`` that do nothing but give results."""
    if not program.effects:
        return program.equations
    return [e for e in program.equations if not e.effects]


def live_equations(program: Program) -> list[Equation]:
    """The equations that have effects or that an output needs, in order."""
    needed = {a for a in program.outputs if isinstance(a, Var)}
    kept = []
    effects = bool(program.effects)
    for equation in reversed(program.equations):
        if any(v in needed for v in equation.outputs) or (effects and equation.effects):
            kept.append(equation)
            needed.update(a for a in equation.inputs if isinstance(a, Var))
    return kept[::-1]


def depending(program: Program, inputs: Iterable[Var]) -> set[Var]:
    """``inputs`` and every variable of ``program`` that depends on one of them or on an effect."""
    found = set(inputs)
    effects = bool(program.effects)
    for equation in program.equations:
        if any(a in found for a in equation.inputs) or (effects and equation.effects):
            found.update(equation.outputs)
    return found


def prune(program: Program, fixed: int) -> tuple[Program, list[int]]:
    """``program`` without dead equations and without unused inputs but for the last ``fixed``.

    Returns:
        The program and the positions of the leading inputs that it still has.
    """
    equations = live_equations(program)
    used = {a for e in equations for a in e.inputs} | set(program.outputs)
    leading = len(program.inputs) - fixed
    kept = [i for i in range(leading) if program.inputs[i] in used]
    inputs = [*(program.inputs[i] for i in kept), *program.inputs[leading:]]
    return Program(inputs, equations, program.outputs, program.name), kept
