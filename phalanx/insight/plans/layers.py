"""The layers of a step: equal ones, whose weights are stacked, and which a loop takes in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.roles import CARRY
from phalanx.core.runs import Loop
from phalanx.insight.costs import runs
from phalanx.insight.plans.weight_dimensions import Origin, moved_as
from phalanx.transforms.storage import size_in_bytes

__all__ = ["NO_LAYERS", "Layers", "layers_of"]

_LEAST = 0.5  # of the weights: what the layers have at least that are taken for those of the step


class Layers(Struct, frozen=True):
    """Equal layers that a loop takes one after the other: how many, and the bytes that one hands to
    the next, for the whole batch."""

    count: int
    handed: float


NO_LAYERS = Layers(1, 0.0)


def layers_of(program: Program, state: Sequence[bool]) -> Layers:
    """The layers of a step, of whose inputs those marked are ``state``: of the first loop that
    takes most of the weights one after the other; else none."""
    origins = [
        Origin(i, tuple(range(t.ndim))) if s else None
        for i, (t, s) in enumerate(zip(program.input_types, state, strict=True))
    ]
    # an optimizer keeps more than the weights
    shapes = {t.shape: t for t, s in zip(program.input_types, state, strict=True) if s}
    held = sum(map(size_in_bytes, shapes.values()))
    for e, operands in _loops(program, origins):
        frame = e.frame
        assert frame is not None
        taken, handed = 0.0, 0.0
        for atom, origin, role in zip(e.inputs, operands, frame.ins, strict=True):
            size = size_in_bytes(atom.type)
            if origin is not None and role.layout and role.layout[0]:
                taken += size
            elif origin is None and role is CARRY:
                handed += size
        if taken >= _LEAST * held and handed:
            return Layers(runs(frame), handed)
    return NO_LAYERS


def _loops(
    program: Program, inputs: Sequence[Origin | None]
) -> Iterator[tuple[Equation, list[Origin | None]]]:
    """The loops of ``program``, those in what runs once included, with the origins of operands."""
    known: dict[Atom, Origin | None] = dict(zip(program.inputs, inputs, strict=True))
    for e in program.equations:
        operands = [known.get(a) if isinstance(a, Var) else None for a in e.inputs]
        frame = e.frame
        if frame is None:
            known.update(zip(e.outputs, moved_as(e, operands), strict=False))
        elif isinstance(frame.runs, Loop):
            yield e, operands
        elif frame.is_call:
            yield from _loops(frame.programs[0], operands)
