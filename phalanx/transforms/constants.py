"""Constants that a compiled program takes as operands, instead of having them written into it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.core.roles import FIXED
from phalanx.core.types import Array
from phalanx.transforms.derive import keep

LARGEST_WRITTEN = 4096  # elements; a larger constant is passed to the compiled program


@dataclass(frozen=True, slots=True)
class Lifted:
    """A program that takes its large constants, and those that lie on devices, as first inputs."""

    program: Program
    constants: tuple[Literal, ...]


def lifted(program: Program) -> Lifted:
    """``program`` with operands in place of constants that are not to be written into a module."""
    return keep(program, "lifted", lambda: _lifted(program)) or Lifted(program, ())


def _lifted(program: Program) -> Lifted | None:
    """None where there are none."""
    atoms = [a for e in program.equations for a in e.inputs if type(a) is Literal]
    inner = (p for e in program.equations if e.prim.frame is not None for p in e.programs)
    if not any(map(_is_lifted, (*atoms, *program.outputs))) and not any(
        lifted(p).constants for p in inner
    ):
        return None
    inputs: dict[int, tuple[Literal, Var]] = {}  # by the identity of the value

    def operand(atom: Atom) -> Atom:
        if not isinstance(atom, Literal) or not _is_lifted(atom):
            return atom
        if id(atom.value) not in inputs:
            inputs[id(atom.value)] = atom, Var(atom.type)
        return inputs[id(atom.value)][1]

    equations: list[Equation] = []
    for e in program.equations:
        e = _with_constants(e)
        equations.append(e.renamed({a: operand(a) for a in e.inputs}))
    outputs = list(map(operand, program.outputs))
    first = [v for _, v in inputs.values()]
    made = Program([*first, *program.inputs], equations, outputs, program.name)
    return Lifted(made, tuple([c for c, _ in inputs.values()]))


def _is_lifted(atom: Atom) -> bool:
    if type(atom) is not Literal:
        return False
    if isinstance(atom.value, np.ndarray):
        return atom.value.size > LARGEST_WRITTEN
    return isinstance(atom.value, Array)


def _with_constants(e: Equation) -> Equation:
    """``e`` with the constants of its sub-programs as operands."""
    if e.prim.frame is None:
        return e
    frame = e.prim.frame(e.params)
    constants = {id(c.value): c for p in frame.every for c in lifted(p).constants}
    if not constants:
        return e
    taking = replace(
        frame,
        programs=tuple([_taking(p, constants) for p in frame.programs]),
        condition=frame.condition and _taking(frame.condition, constants),
        ins=(*frame.choices(frame.ins), *[FIXED] * len(constants), *frame.seen),
    )
    operands = [*frame.choices(e.inputs), *constants.values(), *frame.shown(e.inputs)]
    params = e.prim.rule("reframe")(e.params, taking)
    return Equation(e.prim, operands, params, e.outputs, e.location)


def _taking(program: Program, constants: dict[int, Literal]) -> Program:
    """``program`` with an input for each of ``constants``, of which it may use only some."""
    own = lifted(program)
    places = {id(c.value): i for i, c in enumerate(own.constants)}
    # by place or type: the identity of a constant is its own only as long as somebody holds it
    sources = tuple([places.get(number, c.type) for number, c in constants.items()])

    def make() -> Program:
        inputs = own.program.inputs
        first = [inputs[s] if isinstance(s, int) else Var(s) for s in sources]
        rest = inputs[len(own.constants) :]
        return Program([*first, *rest], own.program.equations, own.program.outputs, program.name)

    return keep(program, ("taking", sources), make)
