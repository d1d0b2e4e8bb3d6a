"""Casts that operations do by themselves, as equations: programs of the field have them so."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.core.manual import typed
from phalanx.core.program import Atom, Equation, Program, Var, operand_types
from phalanx.core.types import LiteralType
from phalanx.primitives.vary import pvary, sorted_axes


def with_casts(program: Program) -> Program:
    """``program`` in which operands of an operation vary along the same axes, to types.

    What an operation with programs of its own makes of its operands, these say.
    """
    return program.update(equations=[equation for e in program.equations for equation in _cast(e)])


def _cast(e: Equation) -> Iterator[Equation]:
    if e.prim.subprograms or e.prim is pvary:
        yield e
        return
    varying = typed(e.prim.axes(e.params)).union(*[a.type.varying for a in e.inputs])
    inputs: list[Atom] = []
    for x, kind in zip(e.inputs, operand_types(e.inputs), strict=True):
        missing = sorted_axes(varying - x.type.varying - x.type.unreduced - x.type.reduced)
        if missing and type(kind) is not LiteralType:  # these fit any operand
            cast = Var(x.type.update(varying=x.type.varying.union(missing)))
            yield Equation(pvary, [x], {"axes": missing}, (cast,), e.location)
            x = cast
        inputs.append(x)
    yield e.update(inputs=inputs)
