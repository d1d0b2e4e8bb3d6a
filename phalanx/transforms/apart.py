"""What a program computes of known inputs, apart from what is linear in the others.

An operation that runs programs may do both: the derivative of a jitted function gives a value
beside its tangent. To transpose it as it is would be to take that value for one that depends on
the linear inputs. Linearized, it is two: one of what is known, and one that is linear.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress

from phalanx.core.program import Atom, Equation, Program
from phalanx.transforms.linearize import Linearized, linearize_program
from phalanx.transforms.needed import only_needed


def known_apart(program: Program, linear: Sequence[bool]) -> Program:
    """``program``, whose operations compute what depends on ``linear`` inputs or what does not."""
    moving: set[Atom] = set(compress(program.inputs, linear))
    names: dict[Atom, Atom] = {}
    equations: list[Equation] = []
    for e in program.equations:
        operation = e.renamed(names)
        parts = _parts(operation, moving)
        if parts is not None:
            names.update(zip(e.outputs, parts.outputs, strict=True))
        for part in [operation] if parts is None else parts.equations:
            equations.append(part)
            if not moving.isdisjoint(part.inputs):
                moving.update(part.outputs)
    outputs = [names.get(a, a) for a in program.outputs]
    return program.update(equations=equations, outputs=outputs)


def _parts(e: Equation, moving: Collection[Atom]) -> Program | None:
    """Operations in place of ``e``; None where all is ``moving``, or ``e`` not linear in it."""
    active = tuple([a in moving for a in e.inputs])
    if e.prim.subprograms is None or not any(active) or all(active):
        return None
    alone = Program.of_one(e.prim, [a.type for a in e.inputs], e.params, e.prim.name, e.location)
    halves = linearize_program(alone, active)
    whole = only_needed(_joined(halves, [*compress(e.inputs, active)]))
    read = set(whole.outputs).union(*[x.inputs for x in whole.equations])
    if not read.isdisjoint(compress(whole.inputs, active)):
        return None
    return whole.renamed(dict(zip(whole.inputs, e.inputs, strict=True)))


def _joined(halves: Linearized, tangents: Sequence[Atom]) -> Program:
    """Of each result the tangent if it has one, and else the value."""
    primal = halves.primal
    computed = primal.outputs[len(halves.nonzero) :]
    residuals = halves.residuals(primal.inputs, computed)
    linear = halves.linear
    linear = linear.renamed(dict(zip(linear.inputs, [*residuals, *tangents], strict=True)))
    moved = iter(linear.outputs)
    pairs = zip(primal.outputs, halves.nonzero, strict=False)
    outputs = [next(moved) if nonzero else value for value, nonzero in pairs]
    return primal.update(equations=[*primal.equations, *linear.equations], outputs=outputs)
