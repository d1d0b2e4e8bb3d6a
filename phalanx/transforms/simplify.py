"""Programs cut down to what is needed, filled up with zeros, and marks that no run changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from phalanx.base import dtypes
from phalanx.base.extended import WORD, is_key
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Equation, Literal, Program, Var
from phalanx.core.types import ArrayType
from phalanx.ops.basis import broadcast, random_wrap

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


def filled(program: Program, types: Sequence[ArrayType], given: Sequence[bool]) -> Program:
    """``program``, which gives the results that are ``given``, with zeros for the others."""
    outputs = iter(program.outputs)
    blanks = [blank(t) for t, g in zip(types, given, strict=True) if not g]
    zeros = iter(blanks)
    every = [next(outputs) if g else next(zeros).outputs[0] for g in given]
    return program.update(equations=[*program.equations, *blanks], outputs=every)


def with_inputs(program: Program, inputs: Iterable[Var]) -> Program:
    """``program`` with further inputs, of which it makes no use, behind its own."""
    return program.update(inputs=[*program.inputs, *inputs])


def without_effects(program: Program) -> list[Equation]:
    """The equations of ``program`` that do nothing but give results."""
    if not program.effects:
        return program.equations
    return [e for e in program.equations if not e.effects]


def live_equations(
    program: Program, wanted: Callable[[Equation], object] = attrgetter("effects")
) -> list[Equation]:
    """The equations that are ``wanted`` or that an output or one of these needs, in order.

    If nothing else is said, those are wanted that have effects.
    """
    needed = set(program.outputs)
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.outputs) or wanted(equation):
            kept.append(equation)
            needed.update(equation.inputs)
    return kept[::-1]


def depending(program: Program, inputs: Iterable[Var]) -> set[Var]:
    """``inputs`` and every variable of ``program`` that depends on one of them or on an effect."""
    dependent = set(inputs)
    effects = bool(program.effects)
    for equation in program.equations:
        if not dependent.isdisjoint(equation.inputs) or (effects and equation.effects):
            dependent.update(equation.outputs)
    return dependent


def prune(program: Program, fixed: int) -> tuple[Program, list[int]]:
    """``program`` without dead equations and without unused inputs but for the last ``fixed``.

    Returns:
        The program and the positions of the leading inputs that it still has.
    """
    equations = live_equations(program)
    used = set(program.outputs).union(*[e.inputs for e in equations])
    leading = len(program.inputs) - fixed
    kept = [i for i in range(leading) if program.inputs[i] in used]
    inputs = [*(program.inputs[i] for i in kept), *program.inputs[leading:]]
    return program.update(inputs=inputs, equations=equations), kept


def used(program: Program) -> tuple[Program, list[int]]:
    """``program`` on the inputs alone that it needs, and their positions.

    Of those that lie over a mesh one is needed: it tells where results are that depend on none.
    """
    pruned, kept = memoize_on(program, "used", lambda: _used(program))
    return (pruned if len(kept) < len(program.inputs) else program), kept


def _used(program: Program) -> tuple[Program, list[int]]:
    pruned, kept = prune(program, 0)
    lying = [i for i, t in enumerate(program.input_types) if t.lies is not None]
    if not lying or not set(kept).isdisjoint(lying):
        return pruned, kept
    kept = sorted([*kept, lying[0]])
    return pruned.update(inputs=[program.inputs[i] for i in kept]), kept
