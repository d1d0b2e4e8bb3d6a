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
from phalanx.insight.plans.dimensions import Dimensions, along_results
from phalanx.run.constrain import constrain
from phalanx.spmd.named import NamedSharding

__all__ = ["Constraint", "constrained"]

BatchDims = tuple[Dimensions, Dimensions]  # those of the rows of the batch, and of its sequences
Dividing = Callable[[ArrayType, int, int | None], NamedSharding | None]
_NO_DIMS: BatchDims = ((), ())


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
    program: Program, rows: Mapping[int, int], sequences: Mapping[int, int], divided: Dividing
) -> tuple[Program, tuple[Constraint, ...]]:
    """``program`` with constraints on what its loops run over, and these.

    Args:
        program: a step.
        rows: the dimension in which an input has the rows of the batch, by number.
        sequences: that in which it has its sequences.
        divided: how a value lies that is divided along its rows, and along its sequences if it has
            any; None where it cannot be.
    """
    count = range(len(program.inputs))
    along = [[(of[i],) if i in of else () for i in count] for of in (rows, sequences)]
    pass_over = _Rows(divided)
    rewritten, _ = pass_over.through(program, [*zip(*along, strict=True)])
    return rewritten, tuple(pass_over.found)


class _Rows:
    """Follows the rows of the batch, and its sequences, through a program, and writes it anew."""

    def __init__(self, divided: Dividing) -> None:
        self.divided = divided
        self.found: list[Constraint] = []

    def through(
        self, program: Program, along: Sequence[BatchDims]
    ) -> tuple[Program, list[BatchDims]]:
        """``program``, whose inputs have rows and sequences ``along`` these dimensions, with
        constraints; those of its outputs."""
        known: dict[Atom, BatchDims] = dict(zip(program.inputs, along, strict=True))
        replaced: dict[Atom, Var] = {}
        before = len(self.found)
        equations: list[Equation] = []
        for e in program.equations:
            operands = [
                known.get(a, _NO_DIMS) if isinstance(a, Var) else _NO_DIMS for a in e.inputs
            ]
            frame = e.frame
            if frame is None:
                known.update(zip(e.outputs, _dims_of_results(e, operands), strict=True))
            elif frame.is_call:
                inner, after = self.through(frame.programs[0], operands)
                if inner is not frame.programs[0]:
                    e = e.reframed(frame.rewritten(lambda _, inner=inner: inner))
                known.update(zip(e.outputs, after, strict=True))
            elif isinstance(frame.runs, Loop):
                equations += self._constraints(e, frame, operands, replaced)
                e = e.update(inputs=[replaced.get(a, a) for a in e.inputs])
            equations.append(e)
        after = [
            known.get(a, _NO_DIMS) if isinstance(a, Var) else _NO_DIMS for a in program.outputs
        ]
        same = len(self.found) == before
        return program if same else program.update(equations=equations), after

    def _constraints(
        self, e: Equation, frame: Frame, operands: Sequence[BatchDims], replaced: dict[Atom, Var]
    ) -> list[Equation]:
        """Constraints on the operands of a loop of which it takes one part after the other."""
        equations: list[Equation] = []
        for atom, role, (rows, sequences) in zip(e.inputs, frame.ins, operands, strict=True):
            is_taken = bool(role.layout and role.layout[0]) and 0 in rows
            if not is_taken or not rows[1:] or atom in replaced:
                continue
            sharding = self.divided(atom.type, rows[1], next(iter(sequences), None))
            if sharding is not None:
                replaced[atom] = Var(atom.type)
                params = {"sharding": sharding}
                equations.append(Equation(constrain, [atom], params, (replaced[atom],), e.location))
                self.found.append(Constraint(e.location, atom.type, sharding))
        return equations


def _dims_of_results(e: Equation, operands: Sequence[BatchDims]) -> list[BatchDims]:
    """In which dimensions the results of an operation have rows and sequences."""
    none: list[Dimensions] = [()] * len(e.outputs)
    rows, sequences = [
        [*along_results(e, along), *none][: len(e.outputs)] for along in zip(*operands, strict=True)
    ] or (none, none)
    return [*zip(rows, sequences, strict=True)]
