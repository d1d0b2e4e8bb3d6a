"""Writing to places that are named twice, where the order matters and nobody says it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phalanx.api.contexts import ensure_compile_time_eval
from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.insight.findings import Code, Finding
from phalanx.insight.subject import Subject
from phalanx.ops.basis import broadcast
from phalanx.ops.index import scatter, scatter_add, scatter_max, scatter_min, scatter_mul
from phalanx.transforms.stage import evaluate

__all__ = ["repeated_indices"]

P115 = Code(
    "P115",
    "a scatter with the same index twice, whose order matters",
    "x.at[jnp.array([0, 0, 1])].set(values)",
    "Which of the values is kept is not defined. Use .add, .max or .min, which take all of them, "
    "or indices that do not repeat; do not say unique_indices=True where they do.",
)

_COMBINING = frozenset({scatter_add, scatter_max, scatter_min, scatter_mul})


def repeated_indices(subject: Subject) -> Iterator[Finding]:
    """Scatters whose indices are constants, some of which are equal."""
    scatters = _COMBINING | {scatter}
    if not scatters & subject.primitives:
        return
    for program in dict.fromkeys([subject.program, *_programs(subject.program)]):
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


def _programs(program: Program) -> Iterator[Program]:
    for e in program.walk():
        yield from e.programs


def _order_matters(e: Equation, makers: dict[Var, Equation]) -> bool:
    if e.params.get("unique_indices"):
        return True
    if e.prim is not scatter:
        return False
    updates = e.inputs[2]
    while type(updates) is Var and updates in makers and makers[updates].prim is broadcast:
        updates = makers[updates].inputs[0]
    return updates.type.shape != ()  # else the same number is written everywhere


def _repeats(e: Equation, makers: dict[Var, Equation]) -> bool:
    indices = _constant(e.inputs[1], makers)
    if indices is None:
        return False
    rows = indices.reshape(-1, indices.shape[-1])
    return len(np.unique(rows, axis=0)) < len(rows)


def _constant(atom: Atom, makers: dict[Var, Equation]) -> np.ndarray | None:
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
