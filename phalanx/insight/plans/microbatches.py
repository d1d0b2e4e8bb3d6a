"""Parts of a batch that a loop takes one after the other, as where gradients are accumulated.

The rows of the batch are divided among chips, and a ``reshape`` makes parts of them. A compiler
divides what it makes along its first dimension, of which each run of the loop takes one part: all
chips compute the same then. Constraints say that the rows of each part are divided instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from phalanx.base.source import Location
from phalanx.core.program import Atom, Equation, Frame, Program, Var
from phalanx.core.runs import Loop
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import reshape, same_elements
from phalanx.run.constrain import constrain
from phalanx.spmd.named import NamedSharding

__all__ = ["Constraint", "Dimensions", "along_results", "constrained"]

Dimensions = tuple[int, ...]  # those in which a value has rows of the batch
Dividing = Callable[[ArrayType, int], NamedSharding | None]


class Constraint(Struct, frozen=True):
    """A value that is told how it lies.

    Attributes:
        location: the loop that runs over it.
        type: its type.
        sharding: how it lies.
        what: what it is.
    """

    location: Location | None
    type: ArrayType
    sharding: NamedSharding
    what: str = "what the loop runs over"


def constrained(
    program: Program, along: Mapping[int, int], divided: Dividing
) -> tuple[Program, tuple[Constraint, ...]]:
    """``program`` with constraints on what its loops run over, and these.

    Args:
        program: a step.
        along: the dimension in which an input has the rows of the batch, by number.
        divided: how a value lies that is divided along a dimension; None where it cannot be.
    """
    rows = [(along[i],) if i in along else () for i in range(len(program.inputs))]
    pass_over = _Rows(divided)
    made, _ = pass_over.through(program, rows)
    return made, tuple(pass_over.found)


class _Rows:
    """Follows the rows of the batch through a program, and writes it anew."""

    def __init__(self, divided: Dividing) -> None:
        self.divided = divided
        self.found: list[Constraint] = []

    def through(
        self, program: Program, rows: Sequence[Dimensions]
    ) -> tuple[Program, list[Dimensions]]:
        """``program``, whose inputs have ``rows``, with constraints; the rows of its outputs."""
        known: dict[Atom, Dimensions] = dict(zip(program.inputs, rows, strict=True))
        replaced: dict[Atom, Var] = {}
        before = len(self.found)
        equations: list[Equation] = []
        for e in program.equations:
            operands = [known.get(a, ()) if isinstance(a, Var) else () for a in e.inputs]
            frame = e.frame
            if frame is None:
                known.update(dict.fromkeys(e.outputs, ()))
                known.update(zip(e.outputs, along_results(e, operands), strict=False))
            elif frame.is_call:
                inner, after = self.through(frame.programs[0], operands)
                if inner is not frame.programs[0]:
                    e = e.reframed(frame.rewritten(lambda _, inner=inner: inner))
                known.update(zip(e.outputs, after, strict=True))
            elif isinstance(frame.runs, Loop):
                equations += self._constraints(e, frame, operands, replaced)
                e = e.update(inputs=[replaced.get(a, a) for a in e.inputs])
            equations.append(e)
        after = [known.get(a, ()) if isinstance(a, Var) else () for a in program.outputs]
        same = len(self.found) == before
        return program if same else program.update(equations=equations), after

    def _constraints(
        self, e: Equation, frame: Frame, operands: Sequence[Dimensions], replaced: dict[Atom, Var]
    ) -> list[Equation]:
        """Constraints on the operands of a loop of which it takes one part after the other."""
        made: list[Equation] = []
        for atom, role, rows in zip(e.inputs, frame.ins, operands, strict=True):
            is_taken = bool(role.layout and role.layout[0]) and 0 in rows
            if not is_taken or not rows[1:] or atom in replaced:
                continue
            sharding = self.divided(atom.type, rows[1])
            if sharding is not None:
                replaced[atom] = Var(atom.type)
                params = {"sharding": sharding}
                made.append(Equation(constrain, [atom], params, (replaced[atom],), e.location))
                self.found.append(Constraint(e.location, atom.type, sharding))
        return made


def along_results(e: Equation, operands: Sequence[Dimensions]) -> list[Dimensions]:
    """The dimensions of the results that correspond to those of operands, such as rows."""
    if not any(operands):
        return []
    if e.prim is reshape:
        pairs = same_elements(e.inputs[0].type.shape, e.outputs[0].type.shape)
        return [tuple([d for before, after in pairs if {*before} & {*operands[0]} for d in after])]
    if e.prim.dims is None:
        return []
    dims = e.prim.dims(*[a.type for a in e.inputs], **e.params)
    labelled = zip(dims.operands, operands, strict=False)
    marked = {labels[d] for labels, rows in labelled for d in rows if d < len(labels)} - {None}
    results = dims.results * (len(e.outputs) if len(dims.results) == 1 else 1)
    return [tuple([d for d, n in enumerate(labels) if n in marked]) for labels in results]
