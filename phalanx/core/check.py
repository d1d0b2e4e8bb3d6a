"""The program checker: every variable defined once, before use, with the type its rule gives."""

from __future__ import annotations

from phalanx.base.errors import ProgramError
from phalanx.core.program import Atom, Equation, Program, Var, operand_types


def check(program: Program, pass_name: str | None = None) -> None:
    """Verify ``program``, its sub-programs included.

    Raises:
        ProgramError: names the equation, what is wrong with it, and what the program was
            ``pass_name``, where that is given.
    """
    try:
        _check(program)
    except ProgramError as e:
        raise (e if pass_name is None else ProgramError(f"after {pass_name}: {e}")) from None


def _check(program: Program) -> None:
    defined: set[Var] = set()
    for var in program.inputs:
        _define(defined, var, program)
    for equation in program.equations:
        _check_inputs(equation.inputs, defined, equation)
        _check_types(equation)
        for inner in equation.programs:
            _check(inner)
        for var in equation.outputs:
            _define(defined, var, program)
    _check_inputs(list(program.outputs), defined, None)


def _define(defined: set[Var], var: Var, program: Program) -> None:
    if var in defined:
        raise ProgramError(f"a variable {var.type} is defined twice in {program.name}")
    defined.add(var)


def _check_inputs(atoms: list[Atom], defined: set[Var], equation: Equation | None) -> None:
    where = f"equation {equation.prim.name}" if equation else "the outputs"
    for atom in atoms:
        if isinstance(atom, Var) and atom not in defined:
            raise ProgramError(f"{where}: an operand {atom.type} is used before it is defined")


def _check_types(equation: Equation) -> None:
    prim = equation.prim
    written = tuple(v.type for v in equation.outputs)
    types = prim.result_type(operand_types(equation.inputs), equation.params)
    expected = tuple(types) if prim.multi else (types,)
    if tuple([t.of_array for t in expected]) != written:
        raise ProgramError(
            f"equation {prim.name}: its type rule gives {expected}, but the program has {written}"
        )
