"""Weights that are gathered where products read them.

A weight is divided over parts of the state along a dimension that a product sums over. A compiler
may then divide the other operand in the same way, and exchange sums of parts, which are larger, of
all rows of the batch. Constraints say that it gathers the weight instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phalanx.core.program import Atom, Equation, Frame, Program, Var
from phalanx.core.types import ArrayType
from phalanx.insight.plans.microbatches import Constraint
from phalanx.insight.plans.weight_dimensions import Origin, in_a_run, moved_as
from phalanx.primitives.contract import dot_general
from phalanx.primitives.index import gather
from phalanx.run.constrain import constrain
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.named import PartitionSpec as P

__all__ = ["with_gathered"]

Origins = Sequence[Origin | None]


def with_gathered(
    program: Program, state: Mapping[int, NamedSharding], axis: str
) -> tuple[Program, tuple[Constraint, ...]]:
    """``program`` with constraints on weights that products read, and these.

    Args:
        program: a step.
        state: how its inputs that are state lie, by number.
        axis: the mesh axis over which they are gathered.
    """
    inputs = [
        Origin(i, tuple(range(t.ndim))) if i in state else None
        for i, t in enumerate(program.input_types)
    ]
    gathering = _Gathered(state, axis)
    rewritten, _ = gathering.through(program, inputs)
    return rewritten, tuple(gathering.found)


class _Gathered:
    """Follows weights through a program, and writes it anew."""

    def __init__(self, state: Mapping[int, NamedSharding], axis: str) -> None:
        self.state = state
        self.axis = axis
        self.found: list[Constraint] = []

    def through(self, program: Program, inputs: Origins) -> tuple[Program, list[Origin | None]]:
        """``program``, whose inputs have these origins, with constraints; those of its outputs."""
        known: dict[Atom, Origin | None] = dict(zip(program.inputs, inputs, strict=True))
        before, equations = len(self.found), list[Equation]()
        for e in program.equations:
            operands = [known.get(a) if isinstance(a, Var) else None for a in e.inputs]
            frame = e.frame
            if frame is not None:
                e, outs = self._framed(e, frame, operands)
                known.update(zip(e.outputs, outs, strict=False))
            elif e.prim is dot_general or e.prim is gather:
                gathers = self._read(e, operands)
                equations += gathers.values()
                e = e.renamed({a: c.outputs[0] for a, c in gathers.items()})
            else:
                known.update(zip(e.outputs, moved_as(e, operands), strict=False))
            equations.append(e)
        after = [known.get(a) if isinstance(a, Var) else None for a in program.outputs]
        same = len(self.found) == before
        return program if same else program.update(equations=equations), after

    def _framed(self, e: Equation, frame: Frame, operands: Origins) -> tuple[Equation, Origins]:
        inside = in_a_run(frame, operands)
        if inside is None:
            return e, []
        (program,) = frame.programs
        rewritten, after = self.through(program, inside)
        if rewritten is not program:
            e = e.reframed(frame.rewritten(lambda p: rewritten if p is program else p))
        return e, [] if frame.is_loop else after

    def _read(self, e: Equation, operands: Origins) -> dict[Atom, Equation]:
        """The constraints on weights that are multiplied with something else, or looked up in."""
        if all(origin is not None for origin in operands):
            return {}
        gathers: dict[Atom, Equation] = {}
        for atom, origin in zip(e.inputs, operands, strict=True):
            sharding = None if origin is None else self._whole(origin, atom.type)
            if sharding is not None and isinstance(atom, Var):
                whole = Var(atom.type)
                params = {"sharding": sharding}
                gathers[atom] = Equation(constrain, [atom], params, (whole,), e.location)
                self.found.append(Constraint(e.location, atom.type, sharding, "the weight"))
        return gathers

    def _whole(self, origin: Origin, kind: ArrayType) -> NamedSharding | None:
        """How a weight lies that is gathered over the axis; None if it is not divided over it."""
        sharding = self.state[origin.number]
        spec = (*sharding.spec, *[None] * kind.ndim)
        axes = [None if d is None else spec[d] for d in origin.dims]
        if self.axis not in axes:
            return None
        return NamedSharding(sharding.mesh, P(*[None if a == self.axis else a for a in axes]))
