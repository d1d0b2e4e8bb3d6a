"""Constants that a program takes as operands, instead of having them written into it.

Compiled programs take those that are large, or lie on devices; programs that others read take all.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from phalanx.core.memoize import memoize_on
from phalanx.core.program import LARGEST_LITERAL, Atom, Equation, Literal, Program, Var
from phalanx.core.roles import FIXED
from phalanx.core.types import Array


class Lifted(Struct, frozen=True):
    """A program that takes constants as first inputs, in the order in which it uses them."""

    program: Program
    constants: tuple[Literal, ...]


def lifted(program: Program, all_arrays: bool = False) -> Lifted:
    """``program`` with operands in place of constants that are not to be written into a module.

    With ``all_arrays``, in place of all its arrays. Functions with rules of the user's keep theirs
    then: such rules know how many operands there are.
    """
    return memoize_on(
        program, ("lifted", all_arrays), lambda: _lifted(program, all_arrays)
    ) or Lifted(program, ())


def _lifted(program: Program, all_arrays: bool) -> Lifted | None:
    """None where there are none."""
    inputs: dict[int, tuple[Literal, Var]] = {}  # by the identity of the value

    def operand(atom: Atom) -> Atom:
        if type(atom) is not Literal or not _is_lifted(atom, all_arrays):
            return atom
        if id(atom.value) not in inputs:
            inputs[id(atom.value)] = atom, Var(atom.type)
        return inputs[id(atom.value)][1]

    def taking(e: Equation) -> Equation:
        e = _with_constants(e, all_arrays)
        if not any([type(a) is Literal and _is_lifted(a, all_arrays) for a in e.inputs]):
            return e
        return e.update(inputs=list(map(operand, e.inputs)))

    equations = list(map(taking, program.equations))
    outputs = list(map(operand, program.outputs))
    if not inputs:
        return None
    constants, first = zip(*inputs.values(), strict=True)
    lifted = program.update(inputs=[*first, *program.inputs], equations=equations, outputs=outputs)
    return Lifted(lifted, constants)


def _is_lifted(atom: Literal, all_arrays: bool) -> bool:
    if isinstance(atom.value, np.ndarray):
        return all_arrays or atom.value.size > LARGEST_LITERAL
    return isinstance(atom.value, Array)


def _with_constants(e: Equation, all_arrays: bool) -> Equation:
    """``e`` with the constants of its sub-programs as operands."""
    frame = e.frame
    if frame is None or (all_arrays and e.prim.user_rules is not None):
        return e
    constants = {id(c.value): c for p in frame.subprograms for c in lifted(p, all_arrays).constants}
    if not constants:
        return e
    taking = frame.rewritten(lambda p: _taking(p, constants, all_arrays), (FIXED,) * len(constants))
    return e.reframed(taking, inputs=frame.prepended(constants.values(), e.inputs))


def _taking(program: Program, constants: dict[int, Literal], all_arrays: bool) -> Program:
    """``program`` with an input for each of ``constants``; it may use only some of them."""
    own = lifted(program, all_arrays)
    places = {id(c.value): i for i, c in enumerate(own.constants)}
    # by place or type: the identity of a constant is its own only as long as somebody holds it
    sources = tuple([places.get(number, c.type) for number, c in constants.items()])

    def make() -> Program:
        inputs = own.program.inputs
        first = [inputs[s] if isinstance(s, int) else Var(s) for s in sources]
        rest = inputs[len(own.constants) :]
        return own.program.update(inputs=[*first, *rest])

    return memoize_on(program, ("taking", all_arrays, sources), make)


def used_inputs(program: Program) -> tuple[Var, ...]:
    """The inputs that ``program`` uses, in order; of an equation, first those of sub-programs."""
    return memoize_on(program, "used inputs", lambda: _used_inputs(program))


def _used_inputs(program: Program) -> tuple[Var, ...]:
    used: list[Atom] = []
    for e in program.equations:
        if e.frame is not None:
            operands = e.frame.body_operands(e.inputs)
            for inner in e.frame.subprograms:
                outer = dict(zip(inner.inputs, operands, strict=True))
                used += [outer[v] for v in used_inputs(inner)]
        used += e.inputs
    read = dict.fromkeys([*used, *program.outputs])
    own = set(program.inputs)
    return tuple([a for a in read if isinstance(a, Var) and a in own])
