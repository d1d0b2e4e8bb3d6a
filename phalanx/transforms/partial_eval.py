"""What a program computes of known inputs, apart from what is linear in the others.

An operation that runs programs may do both: the derivative of a jitted function gives a value
beside its tangent. To transpose it as it is would be to take that value for one that depends on
the linear inputs. Linearized, it is two: one of what is known, and one that is linear.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from phalanx.core.primitive import selected
from phalanx.core.program import Atom, Equation, Frame, Program, Var, operand_types
from phalanx.core.runs import Marks
from phalanx.transforms.dce import dce, live_equations
from phalanx.transforms.linearize import Linearized, linearize_program
from phalanx.transforms.remat_partition import divisible
from phalanx.transforms.simplify import blank, without_effects

LINEAR = "a linear input"  # what a value varies along that depends on one


def partial_eval(program: Program, linear: Sequence[bool]) -> Program:
    """``program`` with each operation that runs programs split in two: one computes what depends on
    ``linear`` inputs, the other what does not."""
    return _partial_eval(program, linear)[0]


def _partial_eval(program: Program, linear: Sequence[bool]) -> tuple[Program, list[bool]]:
    """The same, with marks of the results that depend on ``linear`` inputs."""
    moving: set[Atom] = set(selected(program.inputs, linear))
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
    return program.update(equations=equations, outputs=outputs), [a in moving for a in outputs]


def _parts(e: Equation, moving: Collection[Atom]) -> Program | None:
    """Operations in place of ``e``; None if it runs no programs on what is ``moving``."""
    active = tuple([a in moving for a in e.inputs])
    if e.prim.subprograms is None or not any(active):
        return None
    linearized = _linearized(e, active)
    if linearized is not None:
        return linearized
    return _inside(e, active) if e.prim.user_rules is None else _twice(e, active)


def _linearized(e: Equation, active: tuple[bool, ...]) -> Program | None:
    """The value and the tangent of ``e``; None if that takes values of ``active`` operands."""
    alone = Program.of_one(e.prim, operand_types(e.inputs), e.params, e.prim.name, e.location)
    halves = linearize_program(alone, active)
    joined = dce(_joined(halves, selected(e.inputs, active)))
    read = set(joined.outputs).union(*[x.inputs for x in joined.equations])
    if not read.isdisjoint(selected(joined.inputs, active)):
        return None
    return joined.renamed(dict(zip(joined.inputs, e.inputs, strict=True)))


def _inside(e: Equation, active: Sequence[bool]) -> Program | None:
    """``e`` twice: for what is known in its program, without its effects, and for the rest.

    What runs in lanes takes all operands, also for a value that depends on none of those.
    """
    frame = divisible(e)
    if frame is None or frame.is_loop:
        return None
    program, moved = _partial_eval(frame.programs[0], active)
    pure = program.update(equations=without_effects(program))
    known = _narrowed(e, frame, pure, [not a for a in active], [not m for m in moved])
    rest = _narrowed(e, frame, program, [True] * len(active), moved)
    equations = [known, rest] if known.outputs else [rest]
    inputs = [a for a in e.inputs if isinstance(a, Var)]
    return Program(inputs, equations, e.outputs, e.prim.name)


def _twice(e: Equation, active: Marks) -> Program | None:
    """``e``, whose rules fit it as it is, for what depends on ``active`` operands; and once more,
    with zeros in place of these, for what does not. None if there is no such result."""
    marks = [frozenset({LINEAR}) if a else frozenset[str]() for a in active]
    found = e.prim.result_varies(marks, e.params)
    if not isinstance(found, tuple):
        return None
    moved = [LINEAR in v for v in found]
    if all(moved):
        return None
    blanks = [blank(a.type) if m else None for a, m in zip(e.inputs, active, strict=True)]
    known = [a if b is None else b.outputs[0] for a, b in zip(e.inputs, blanks, strict=True)]
    unused = [tuple([Var(v.type) for v in e.outputs]) for _ in range(2)]
    once = [v if not m else u for v, u, m in zip(e.outputs, unused[0], moved, strict=True)]
    again = [v if m else u for v, u, m in zip(e.outputs, unused[1], moved, strict=True)]
    equations = [b for b in blanks if b is not None]
    equations += [e.update(inputs=known, outputs=tuple(once)), e.update(outputs=tuple(again))]
    inputs = [a for a in e.inputs if isinstance(a, Var)]
    return Program(inputs, equations, e.outputs, e.prim.name)


def _narrowed(
    e: Equation, frame: Frame, program: Program, live_ins: Sequence[bool], live_outs: Sequence[bool]
) -> Equation:
    """``e`` with ``program`` in it: the operands of ``live_ins``, the results of ``live_outs``."""
    inputs, outputs = selected(program.inputs, live_ins), selected(program.outputs, live_outs)
    part = program.update(inputs=inputs, outputs=outputs)
    live_frame = replace(frame, programs=(part.update(equations=live_equations(part)),))
    return e.narrowed(live_frame, live_ins, live_outs)


def _joined(halves: Linearized, tangents: Sequence[Atom]) -> Program:
    """The program of the tangent of each result that has one, and of the value of others."""
    primal = halves.primal
    computed = primal.outputs[len(halves.nonzero) :]
    residuals = halves.residuals(primal.inputs, computed)
    linear = halves.linear
    linear = linear.renamed(dict(zip(linear.inputs, [*residuals, *tangents], strict=True)))
    moved = iter(linear.outputs)
    pairs = zip(primal.outputs, halves.nonzero, strict=False)
    outputs = [next(moved) if nonzero else value for value, nonzero in pairs]
    return primal.update(equations=[*primal.equations, *linear.equations], outputs=outputs)
