"""The linearization of a scanned body: what is stored per row, and what is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.core.primitive import ZERO
from phalanx.core.program import Atom, Program, Var
from phalanx.core.trace import running
from phalanx.ops.basis import instantiate
from phalanx.transforms.linearize import Linearized, linearize_program
from phalanx.transforms.simplify import depending, prune, without_effects
from phalanx.transforms.stage import Stage, evaluate


@dataclass(frozen=True, slots=True)
class Parts:
    """How the inputs of a body divide: constants, then carried values, then rows."""

    constants: int
    carried: int

    def split(self, values: Sequence[Any]) -> tuple[list, list, list]:
        """Constants, carry and rows."""
        values = list(values)
        end = self.constants + self.carried
        return values[: self.constants], values[self.constants : end], values[end:]

    def marks(self, marks: Sequence[bool], carried: bool) -> tuple[bool, ...]:
        """``marks``, one per input, with ``carried`` for those of the carry."""
        constants, carry, rows = self.split(marks)
        return (*constants, *[carried] * len(carry), *rows)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a residual comes from.

    ``kind`` is "constant" or "row" for an input of the scan, at ``index``; "once" for what is
    computed from the constants alone, "stored" for what the primal scan stores for each row.
    """

    kind: str
    index: int

    @property
    def fixed(self) -> bool:
        """Whether it is the same in every turn."""
        return self.kind in ("constant", "once")


@dataclass(frozen=True, slots=True)
class LinearScan:
    """A body split for scanning.

    ``primal`` takes ``constants`` first and gives the residuals that are stored as rows after
    its own; ``hoisted`` computes from all constants the residuals that do not change.
    ``carried`` marks the carried values that have a tangent, ``nonzero`` the results that have.
    ``linear`` takes fixed residuals, tangents of constants, those of the carry, residuals that
    are rows, tangents of rows.
    """

    constants: list[Any]
    primal: Program
    primal_parts: Parts
    hoisted: Program
    sources: tuple[Source, ...]
    carried: tuple[bool, ...]
    nonzero: tuple[bool, ...]
    linear: Program
    linear_parts: Parts

    def residuals(
        self, inputs: Sequence[Any], once: Sequence[Any], stored: Sequence[Any]
    ) -> tuple[list, list]:
        """The fixed residuals and those that are rows, in order."""
        place = {"constant": inputs, "row": inputs, "once": once, "stored": stored}
        found = [(s.fixed, place[s.kind][s.index]) for s in self.sources]
        return [x for fixed, x in found if fixed], [x for fixed, x in found if not fixed]


def linear_scan(program: Program, parts: Parts, nonzero: tuple[bool, ...]) -> LinearScan:
    """Split the body ``program``, where the inputs marked ``nonzero`` have a tangent."""
    key = ("linearize scan", parts, nonzero)
    if key not in program.derived:
        program.derived[key] = _split(program, parts, nonzero)
    return program.derived[key]


def _split(program: Program, parts: Parts, nonzero: tuple[bool, ...]) -> LinearScan:
    halves, carried = stable_halves(program, parts, nonzero)
    primal_parts = Parts(len(halves.constants) + parts.constants, parts.carried)
    once, stored, sources = _sort_residuals(program, parts, halves)
    count = len(program.outputs)
    primal = Program(
        halves.primal.inputs,
        halves.primal.equations,
        [*halves.primal.outputs[:count], *stored],
        program.name,
    )
    fixed = halves.primal.inputs[: primal_parts.constants]
    hoisted = Program(fixed, without_effects(halves.primal), once, program.name)
    hoisted, _ = prune(hoisted, fixed=len(fixed))
    linear, linear_parts = _linear_body(program, parts, nonzero, halves, carried, sources)
    return LinearScan(
        halves.constants,
        primal,
        primal_parts,
        hoisted,
        tuple(sources),
        carried,
        (*carried, *halves.nonzero[parts.carried :]),
        linear,
        linear_parts,
    )


def stable_halves(
    program: Program, parts: Parts, nonzero: tuple[bool, ...]
) -> tuple[Linearized, tuple[bool, ...]]:
    """The body linearized; a carried value has a tangent if it gets one in any turn."""
    constants, carry, rows = parts.split(nonzero)
    while True:
        halves = linearize_program(program, (*constants, *carry, *rows))
        grown = [c or n for c, n in zip(carry, halves.nonzero, strict=False)]
        if grown == carry:
            return halves, tuple(carry)
        carry = grown


def _sort_residuals(
    program: Program, parts: Parts, halves: Linearized
) -> tuple[list[Atom], list[Atom], list[Source]]:
    """What is computed once, what is stored for each row, and where each residual is found."""
    inputs = halves.primal.inputs[len(halves.constants) :]
    varying = depending(halves.primal, inputs[parts.constants :])
    computed = iter(halves.primal.outputs[len(program.outputs) :])
    once: list[Atom] = []
    stored: list[Atom] = []
    sources = []
    for origin in halves.forwarded:
        if origin is not None and origin < parts.constants:
            sources.append(Source("constant", origin))
        elif origin is not None and origin >= parts.constants + parts.carried:
            sources.append(Source("row", origin))
        else:
            atom = next(computed) if origin is None else inputs[origin]
            kept, kind = (stored, "stored") if atom in varying else (once, "once")
            sources.append(Source(kind, len(kept)))
            kept.append(atom)
    return once, stored, sources


def _linear_body(
    program: Program,
    parts: Parts,
    nonzero: tuple[bool, ...],
    halves: Linearized,
    carried: tuple[bool, ...],
    sources: Sequence[Source],
) -> tuple[Program, Parts]:
    """The linear half, its inputs in the order of a scan, the tangents of the carry all there."""
    residuals = halves.linear.inputs[: len(sources)]
    constants, _, _ = parts.split(nonzero)
    cut = Parts(sum(constants), sum(carried))
    of_constants, of_carry, of_rows = cut.split(halves.linear.inputs[len(sources) :])
    fixed = [r for r, s in zip(residuals, sources, strict=True) if s.fixed]
    moving = [r for r, s in zip(residuals, sources, strict=True) if not s.fixed]
    order: list[Var] = [*fixed, *of_constants, *of_carry, *moving, *of_rows]
    stage = Stage(None, program.name)
    made = {v: stage.input(v.type) for v in order}
    with running(stage):
        found = iter(evaluate(halves.linear, [made[v] for v in halves.linear.inputs]))
        outputs = [next(found) if n else ZERO for n in halves.nonzero]
        ends = zip(outputs, program.output_types, carried, strict=False)
        dense = [instantiate(t, kind) for t, kind, c in ends if c]
    kept = [t for t in outputs[parts.carried :] if t is not ZERO]
    linear, _ = stage.finish(list(made.values()), [*dense, *kept], program.name)
    return linear, Parts(len(fixed) + len(of_constants), len(of_carry))
