"""Constants that a compiled program takes as operands, instead of having them written into it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from phalanx.core.program import LARGEST_LITERAL, Atom, Equation, Literal, Program, Var
from phalanx.core.roles import FIXED
from phalanx.core.types import Array
from phalanx.transforms.derive import keep


class Lifted(Struct, frozen=True):
    """A program that takes its large constants, and those that lie on devices, as first inputs."""

    program: Program
    constants: tuple[Literal, ...]


def lifted(program: Program) -> Lifted:
    """``program`` with operands in place of constants that are not to be written into a module."""
    return keep(program, "lifted", lambda: _lifted(program)) or Lifted(program, ())


def _lifted(program: Program) -> Lifted | None:
    """None where there are none."""
    inputs: dict[int, tuple[Literal, Var]] = {}  # by the identity of the value

    def operand(atom: Atom) -> Atom:
        if type(atom) is not Literal or not _is_lifted(atom):
            return atom
        if id(atom.value) not in inputs:
            inputs[id(atom.value)] = atom, Var(atom.type)
        return inputs[id(atom.value)][1]

    def taking(e: Equation) -> Equation:
        e = _with_constants(e)
        if not any([type(a) is Literal and _is_lifted(a) for a in e.inputs]):
            return e
        return e.update(inputs=list(map(operand, e.inputs)))

    equations = list(map(taking, program.equations))
    outputs = list(map(operand, program.outputs))
    if not inputs:
        return None
    constants, first = zip(*inputs.values(), strict=True)
    made = program.update(inputs=[*first, *program.inputs], equations=equations, outputs=outputs)
    return Lifted(made, constants)


def _is_lifted(atom: Literal) -> bool:
    if isinstance(atom.value, np.ndarray):
        return atom.value.size > LARGEST_LITERAL
    return isinstance(atom.value, Array)


def _with_constants(e: Equation) -> Equation:
    """``e`` with the constants of its sub-programs as operands."""
    frame = e.frame
    if frame is None:
        return e
    constants = {id(c.value): c for p in frame.every for c in lifted(p).constants}
    if not constants:
        return e
    taking = frame.rewritten(lambda p: _taking(p, constants), (FIXED,) * len(constants))
    return e.reframed(taking, inputs=frame.with_first(constants.values(), e.inputs))


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
        return own.program.update(inputs=[*first, *rest])

    return keep(program, ("taking", sources), make)
