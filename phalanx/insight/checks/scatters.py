"""Writing to places that are named twice, where the order matters and nobody says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from phalanx.api.contexts import ensure_compile_time_eval
from phalanx.base import dtypes
from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import Subject
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.primitives.basis import broadcast, convert
from phalanx.primitives.elementwise import ceil, div, floor, rem, round
from phalanx.primitives.generators import rng_bit_generator
from phalanx.primitives.index import (
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from phalanx.primitives.random_bits import threefry2x32
from phalanx.primitives.reduce import argmax, argmin
from phalanx.primitives.shape import iota
from phalanx.primitives.sort import sort, top_k
from phalanx.transforms.stage import evaluate

__all__ = ["repeated_indices"]

P115 = Code(
    "P115",
    "a scatter with repeated indices, whose order matters",
    "x.at[jnp.array([0, 0, 1])].set(values)",
    "It is not defined which of the values is kept. Use .add, .max or .min, which combine "
    "them, or indices that do not repeat; unique_indices=True promises that they do not.",
)

_COMBINING = frozenset({scatter_add, scatter_max, scatter_min, scatter_mul})
_DIFFERENT = frozenset({iota, sort, top_k})
_TO_ONE = frozenset({rem, floor, ceil, round, argmax, argmin})
_GENERATORS = frozenset({threefry2x32, rng_bit_generator})


def repeated_indices(subject: Subject) -> Iterator[Finding]:
    """Scatters of which some indices are equal: constants, or numbers of which some must be."""
    if scatter in subject.primitives:
        flow = _IndexFlow(subject)
        flow.run(subject.program, [frozenset({_Origin.ARGUMENT})] * len(subject.program.inputs))
        yield from flow.findings
    scatters = _COMBINING | {scatter}
    if not scatters & subject.primitives:
        return
    for program in subject.programs:
        if not scatters & {e.prim for e in program.equations}:
            continue
        makers = {v: e for e in program.equations for v in e.outputs}
        for e in program.equations:
            if e.prim in scatters and _order_matters(e, makers) and _repeats(e, makers):
                yield P115.at(
                    e.location or subject.place,
                    "two of the indices are equal, "
                    + ("and unique_indices says that none are" if e.params.get("unique_indices")
                       else "and different values are written to the same place"),
                )  # fmt: skip


def _order_matters(e: Equation, makers: dict[Any, Equation]) -> bool:
    if e.params.get("unique_indices"):
        return True
    if e.prim is not scatter:
        return False
    updates = e.inputs[2]
    while type(updates) is Var and updates in makers and makers[updates].prim is broadcast:
        updates = makers[updates].inputs[0]
    return updates.type.shape != ()  # else the same number is written everywhere


def _repeats(e: Equation, makers: dict[Any, Equation]) -> bool:
    indices = _constant(e.inputs[1], makers)
    if indices is None:
        return False
    rows = indices.reshape(-1, indices.shape[-1])
    return len(np.unique(rows, axis=0)) < len(rows)


def _constant(atom: Atom, makers: dict[Any, Equation]) -> np.ndarray | None:
    """The value of ``atom``, if it is made of constants alone."""
    needed: dict[Equation, None] = {}
    waiting = [atom]
    while waiting:
        a = waiting.pop()
        if type(a) is Literal:
            continue
        e = makers.get(a)
        if e is None or e.prim.subprograms is not None or e.effects or e.axes:
            return None
        needed[e] = None
        waiting += e.inputs
    order = {e: i for i, e in enumerate(makers.values())}
    program = Program((), sorted(needed, key=order.__getitem__), [atom], "indices")
    with ensure_compile_time_eval():
        return np.asarray(evaluate(program, [])[0])


# ---- indices that are computed ------------------------------------------------------------------


class _Origin(Enum):
    """How the numbers of an array were made, as to whether some of them are equal; those of
    constants, which have no mark, are known."""

    ARGUMENT = "are arguments"
    DRAWN = "are drawn at random, each for itself"
    MANY_TO_ONE = "are made by an operation that takes many numbers to one"
    DIFFERENT = "are positions, of which no two are equal"


class _IndexFlow(Flow):
    """Marks say how the numbers were made that are indices in the end."""

    origins = _DIFFERENT | _GENERATORS

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.makers: dict[Any, Equation] = {}
        self.findings: dict[Finding, None] = {}

    def begin(self, program: Program) -> None:
        self.makers |= {v: e for e in program.equations for v in e.outputs}

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        if e.prim is scatter:
            self._written(e, operands[1])
        if e.prim in _GENERATORS:
            return frozenset({_Origin.DRAWN})
        if e.prim in _DIFFERENT:
            return frozenset({_Origin.DIFFERENT})
        marks = NOTHING.union(*operands)
        return marks | {_Origin.MANY_TO_ONE} if marks and _is_many_to_one(e) else marks

    def _written(self, e: Equation, marks: Marks) -> None:
        indices = e.inputs[1].type
        several = indices.size > indices.shape[-1] and not e.params["numbers"].operand_batching_dims
        is_declared = e.params["unique_indices"]  # that the user knows
        is_safe = is_declared or _Origin.DIFFERENT in marks
        if not several or is_safe or not _order_matters(e, self.makers):
            return
        origin = max(marks, key=list(_Origin).index, default=_Origin.ARGUMENT)
        if origin is not _Origin.ARGUMENT:
            why = f"the indices {origin.value}: where two are equal, one of the values is lost"
        elif marks and self._updates_what_it_read(e):
            why = "what is written was read there: where two indices are equal, one update is lost"
        else:
            return
        self.findings[P115.at(self.place(e) or self.subject.place, why)] = None

    def _updates_what_it_read(self, e: Equation) -> bool:
        """Whether values are those that were at the indices, changed by others."""
        whole, indices, updates = e.inputs
        sources, read = set[Atom](), False
        for a in _elementwise_sources(self.makers, updates):
            maker = self.makers.get(a)
            if maker is not None and maker.prim is gather and maker.inputs[0] is whole:
                pair = maker.inputs[1], indices
                at, here = (_elementwise_sources(self.makers, i) for i in pair)
                read |= at == here
            elif a.type.shape != ():
                sources.add(a)
        return read and bool(sources)


def _is_many_to_one(e: Equation) -> bool:
    if e.prim is convert:
        return dtypes.is_floating(e.inputs[0].type.dtype) and e.outputs[0].type.dtype.kind in "iu"
    return e.prim in _TO_ONE or (e.prim is div and e.outputs[0].type.dtype.kind in "iu")


def _elementwise_sources(makers: dict[Any, Equation], atom: Atom) -> set[Atom]:
    """What ``atom`` is made of elementwise, and is itself not made so."""
    found: set[Atom] = set()
    waiting, seen = [atom], set[Atom]()
    while waiting:
        a = waiting.pop()
        if type(a) is Literal or a in seen:
            continue
        seen.add(a)
        e = makers.get(a)
        if e is None or e.prim is gather or not (e.prim.elements.fused or e.prim.elements.copied):
            found.add(a)
        else:
            waiting += e.inputs
    return found
