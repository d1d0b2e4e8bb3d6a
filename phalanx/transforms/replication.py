"""Replication analysis: over which named axes does a value differ between lanes?

A forward pass over a program with each primitive's ``vary`` rule. It proves what
``out_axes=None`` promises, or finds the line of the user's that broke it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from phalanx.core.interpret import interpret, values_of
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Literal, Program, Var

Varying = frozenset[Any]
Divergence = tuple[Equation, Varying]
_Deciding = dict[Equation, Varying]  # over which axes lanes may decide differently
_deciding: ContextVar[_Deciding | None] = ContextVar("deciding", default=None)


class _Outcome(Struct, frozen=True):
    """What is known of a program, given over which axes its inputs differ.

    Attributes:
        outputs: over which axes each of its outputs does.
        deciding: the conditions and loops, at any depth, about which lanes decide differently.
    """

    outputs: tuple[Varying, ...]
    deciding: _Deciding


def varying(program: Program, inputs: Sequence[Varying]) -> dict[Var, Varying]:
    """The named axes over which each variable of ``program`` differs."""
    return values_of(program, inputs, _varying_results, _varies_nowhere)


def _varying_results(e: Equation, operands: Sequence[Varying]) -> Varying | Sequence[Varying]:
    deciding = _deciding.get()
    if deciding is not None and e.prim.decides is not None:
        _add(deciding, e, e.prim.decides(operands, **e.params))
    rule: Varying | tuple[Varying, ...] = e.prim.result_varies(operands, e.params)
    return (rule,) * len(e.outputs) if e.prim.multi and isinstance(rule, frozenset) else rule


def _add(deciding: _Deciding, e: Equation, differing: Varying) -> None:
    if differing:
        deciding[e] = differing | deciding.get(e, Varying())


def _varies_nowhere(constant: Literal) -> Varying:
    return frozenset()


def varying_outputs(program: Program, inputs: Sequence[Varying]) -> tuple[Varying, ...]:
    """The named axes over which each output of ``program`` differs."""
    outcome = _outcome(program, inputs)
    outer = _deciding.get()
    if outer is not None:
        for e, differing in outcome.deciding.items():
            _add(outer, e, differing)
    return outcome.outputs


def _outcome(program: Program, inputs: Sequence[Varying]) -> _Outcome:
    """Found once: a loop asks again until nothing is new, as each of those around it does."""

    def find() -> _Outcome:
        deciding: _Deciding = {}
        token = _deciding.set(deciding)
        try:
            outputs = interpret(program, inputs, _varying_results, _varies_nowhere)
        finally:
            _deciding.reset(token)
        return _Outcome(tuple(outputs), deciding)

    return memoize_on(program, ("varying", *inputs), find)


def _communicates(equation: Equation) -> Varying:
    """The named axes over which an equation sends something."""
    named = equation.prim.named_axes
    if not equation.axes or (named is not None and not named.communicates):
        return frozenset()
    inner = [e for program in equation.programs for e in program.equations]
    if not inner:
        return equation.axes
    return equation.axes.intersection(Varying().union(*map(_communicates, inner)))


def divergences(
    program: Program, inputs: Sequence[Varying], anywhere: bool = False
) -> list[Divergence]:
    """The conditions and loops, at any depth, in which lanes may miss each other.

    They run a collective over an axis, but lanes of that axis may decide differently whether or
    how often: if each did only what it decides, some would wait for ever. Where the compiler may
    communicate ``anywhere``, all conditions are such.
    """
    if not any(p.decides is not None for p in program.primitives):
        return []
    deciding = _outcome(program, inputs).deciding.items()
    met = [(e, over if anywhere else over & _communicates(e)) for e, over in deciding]
    return [(e, over) for e, over in met if over]


def _of(atom: Atom, variation: dict[Var, Varying]) -> Varying:
    return variation[atom] if isinstance(atom, Var) else frozenset()


def culprits(
    program: Program, inputs: Sequence[Varying], output: Atom, axis: str
) -> list[Equation]:
    """The equations that first brought the variation over ``axis`` into ``output``.

    They are those on the way to ``output`` whose result differs over ``axis`` although they
    take an input of the program, or make the difference themselves.
    """
    variation = varying(program, inputs)
    return list(_culprits(program, variation, output, axis))


def lines_of(equations: Iterable[Equation]) -> str:
    """The user's lines from which the first three of ``equations`` that have one come."""
    lines = dict.fromkeys(str(e.location) for e in equations if e.location is not None)
    return ", ".join(list(lines)[:3])


def _culprits(
    program: Program, variation: dict[Var, Varying], output: Atom, axis: str
) -> Iterator[Equation]:
    pending: set[Atom] = {output}
    sources: list[Equation] = []
    entering = set(program.inputs)
    for equation in reversed(program.equations):
        if not pending.intersection(equation.outputs):
            continue
        differing = [a for a in equation.inputs if axis in _of(a, variation)]
        if not differing or entering.intersection(v for v in differing if isinstance(v, Var)):
            sources.append(equation)
        pending.update(v for v in differing if isinstance(v, Var))
    yield from reversed(sources)
