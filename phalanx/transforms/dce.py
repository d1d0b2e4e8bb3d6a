"""Dead code elimination: what no result and no effect needs, left out of programs.

A compiler leaves out much of that, too, once it is written and read; but not what the runs of a
loop compute, store and carry along for each other alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import selected
from phalanx.core.program import Atom, Equation, Frame, Program
from phalanx.core.roles import CHOICE
from phalanx.core.runs import Marks
from phalanx.transforms.simplify import fixpoint

IsRoot = Callable[[Equation], object]
_EFFECTS: IsRoot = attrgetter("effects")


def _live(program: Program, needed: set[Atom], is_root: IsRoot = _EFFECTS) -> Iterator[Equation]:
    """The equations for which ``is_root`` is true and those that give what is ``needed``, from the
    last one on; the caller adds to ``needed`` what each of them takes."""
    any_root = is_root is not _EFFECTS or program.effects
    for e in reversed(program.equations):
        if not needed.isdisjoint(e.outputs) or (any_root and is_root(e)):
            yield e


def live_equations(program: Program, is_root: IsRoot = _EFFECTS) -> list[Equation]:
    """The equations that are roots, or that an output or a root needs, in order.

    Roots are those for which ``is_root`` is true: by default, those that have effects.
    """
    needed = set(program.outputs)
    live: list[Equation] = []
    for equation in _live(program, needed, is_root):
        live.append(equation)
        needed.update(equation.inputs)
    return live[::-1]


def prune(program: Program, fixed: int) -> tuple[Program, list[int]]:
    """``program`` without dead equations and without unused inputs but for the last ``fixed``.

    Returns:
        The program and the positions of the leading inputs that it still has.
    """
    equations = live_equations(program)
    used = set(program.outputs).union(*[e.inputs for e in equations])
    leading = len(program.inputs) - fixed
    positions = [i for i in range(leading) if program.inputs[i] in used]
    inputs = [*(program.inputs[i] for i in positions), *program.inputs[leading:]]
    return program.update(inputs=inputs, equations=equations), positions


def without_unused_inputs(program: Program) -> tuple[Program, list[int]]:
    """``program`` on the inputs alone that it needs, and their positions.

    If types of inputs have specs, one of these inputs is kept in any case: it tells on which mesh
    results are that depend on no input.
    """
    pruned, positions = memoize_on(
        program, "without unused inputs", lambda: _without_unused(program)
    )
    return (pruned if len(positions) < len(program.inputs) else program), positions


def _without_unused(program: Program) -> tuple[Program, list[int]]:
    pruned, positions = prune(program, 0)
    sharded = [i for i, t in enumerate(program.input_types) if t.spec is not None]
    if not sharded or not set(positions).isdisjoint(sharded):
        return pruned, positions
    positions = sorted([*positions, sharded[0]])
    return pruned.update(inputs=[program.inputs[i] for i in positions]), positions


# ---- in sub-programs, too -----------------------------------------------------------------------


def dce(program: Program) -> Program:
    """``program`` with what its results and effects need, in its sub-programs, too.

    One that is a single operation over devices stays whole: that says how its inputs lie.
    """
    alone = program.only
    if alone is not None and alone.prim.on_devices.region is not None:
        return program
    return with_outputs(program, (True,) * len(program.outputs))


def with_outputs(program: Program, live_outs: Marks) -> Program:
    """``program``, of the same inputs, with what its effects need and the results that
    ``live_outs`` marks, which alone it gives."""
    return (
        memoize_on(program, ("giving", live_outs), lambda: _pruned(program, live_outs)) or program
    )


def _pruned(program: Program, live_outs: Marks) -> Program | None:
    """``program`` for the results that ``live_outs`` marks; None if they need all of it."""
    outputs = selected(program.outputs, live_outs)
    needed: set[Atom] = set(outputs)
    equations: list[Equation] = []
    for e in _live(program, needed):
        narrowed = e if e.prim.subprograms is None else _narrowed(e, needed)
        equations.append(narrowed)
        needed.update(narrowed.inputs)
    equations.reverse()
    if equations == program.equations and len(outputs) == len(live_outs):
        return None
    return program.update(equations=equations, outputs=outputs)


def _narrowed(e: Equation, needed: set[Atom]) -> Equation:
    """``e`` with those of its results that are ``needed``, here or by another run."""
    frame = _frame(e)
    if frame is None:
        return e
    live_outs = _live_results(frame, [v in needed for v in e.outputs])
    live_ins = _live_operands(frame, live_outs)
    seen = tuple(frame.body_operands(live_ins))
    live_frame = replace(
        frame,
        programs=tuple([_with_inputs(with_outputs(p, live_outs), seen) for p in frame.programs]),
        condition=frame.condition and _with_inputs(with_outputs(frame.condition, (True,)), seen),
    )
    if live_frame == frame and all(live_ins) and all(live_outs):
        return e
    return e.narrowed(live_frame, live_ins, live_outs)


def _with_inputs(program: Program, seen: Marks) -> Program:
    """``program`` with those inputs alone that ``seen`` marks."""
    if all(seen):
        return program
    inputs = selected(program.inputs, seen)
    return memoize_on(program, ("seen", seen), lambda: program.update(inputs=inputs))


# ---- which results and operands -----------------------------------------------------------------


def _frame(e: Equation) -> Frame | None:
    """The frame of ``e``, if there may be less of it."""
    return None if e.prim.subprograms is None or e.prim.subprograms.whole else e.frame


def _live_results(frame: Frame, needed: Sequence[bool]) -> Marks:
    """Marks of the results that are ``needed`` or that the next run of a loop needs."""

    def needed_again(live: Sequence[bool]) -> list[bool]:
        carried = frame.carried_in(_read(frame, tuple(live)))
        return frame.with_carried_out([False] * len(live), carried)

    return tuple(fixpoint(needed, needed_again) if frame.is_loop else needed)


def _live_operands(frame: Frame, live_outs: Marks) -> Marks:
    """Marks of the operands that are needed for the results that ``live_outs`` marks."""
    return tuple(frame.with_carried_in(_read(frame, live_outs), frame.carried_out(live_outs)))


def _read(frame: Frame, live_outs: Marks) -> list[bool]:
    """Which operands programs read for the results that ``live_outs`` marks."""
    reads = [_reads(p, live_outs) for p in frame.programs]
    if frame.condition is not None:
        reads.append(_reads(frame.condition, (True,)))
    read = iter([any(column) for column in zip(*reads, strict=True)])
    return [r is CHOICE or next(read) for r in frame.ins]


def _reads(program: Program, live_outs: Marks) -> Marks:
    """Which inputs ``program`` needs for the results that ``live_outs`` marks."""
    return memoize_on(program, ("reads", live_outs), lambda: _inputs_read(program, live_outs))


def _inputs_read(program: Program, live_outs: Marks) -> Marks:
    needed: set[Atom] = set(selected(program.outputs, live_outs))
    for e in _live(program, needed):
        needed.update(_operands(e, needed))
    return tuple([v in needed for v in program.inputs])


def _operands(e: Equation, needed: set[Atom]) -> Sequence[Atom]:
    """The operands of ``e`` for those of its results that are ``needed``."""
    frame = _frame(e)
    if frame is None:
        return e.inputs
    live_outs = _live_results(frame, [v in needed for v in e.outputs])
    return selected(e.inputs, _live_operands(frame, live_outs))
