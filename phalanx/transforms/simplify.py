"""Programs filled up with zeros or without effects, and marks that no run changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from phalanx.base import dtypes
from phalanx.base.extended import WORD, is_key
from phalanx.core.program import Equation, Literal, Program, Var
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import broadcast, random_wrap

Mark = TypeVar("Mark", bool, frozenset[Any])


def fixpoint(start: Sequence[Mark], step: Callable[[Sequence[Mark]], Sequence[Mark]]) -> list[Mark]:
    """The least marks from ``start`` on to which ``step``, one run of a loop, adds nothing."""
    marks = list(start)
    while True:
        grown = [a | b for a, b in zip(marks, step(marks), strict=True)]
        if grown == marks:
            return marks
        marks = grown


def blank(type: ArrayType) -> Equation:
    """Zeros in place of a value that is not there, or not used."""
    if is_key(type.dtype):
        words = Literal(np.zeros(type.physical.shape, WORD))
        return Equation(random_wrap, [words], {"dtype": type.dtype}, (Var(type),), None)
    zero = Literal(dtypes.scalar(0, type.dtype))
    params = {"shape": type.shape, "dims": ()}
    return Equation(broadcast, [zero], params, (Var(broadcast.type(zero.type, **params)),), None)


def filled(program: Program, types: Sequence[ArrayType], present: Sequence[bool]) -> Program:
    """``program``, which gives the results that ``present`` marks, with zeros for the others."""
    outputs = iter(program.outputs)
    blanks = [blank(t) for t, g in zip(types, present, strict=True) if not g]
    zeros = iter(blanks)
    outputs_or_zeros = [next(outputs) if g else next(zeros).outputs[0] for g in present]
    return program.update(equations=[*program.equations, *blanks], outputs=outputs_or_zeros)


def with_inputs(program: Program, inputs: Iterable[Var]) -> Program:
    """``program`` with further inputs behind its own, which it does not use."""
    return program.update(inputs=[*program.inputs, *inputs])


def without_effects(program: Program) -> list[Equation]:
    """The equations of ``program`` that do nothing but give results."""
    if not program.effects:
        return program.equations
    return [e for e in program.equations if not e.effects]


def depending(program: Program, inputs: Iterable[Var]) -> set[Var]:
    """``inputs`` and every variable of ``program`` that depends on one of them or on an effect."""
    dependent = set(inputs)
    effects = bool(program.effects)
    for equation in program.equations:
        if not dependent.isdisjoint(equation.inputs) or (effects and equation.effects):
            dependent.update(equation.outputs)
    return dependent
