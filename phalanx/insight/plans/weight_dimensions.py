"""The sides of weights: over which dimensions of an array of the state products sum, and which they
give. An array whose parts are to multiply by themselves, as heads of attention do, is cut there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from msgspec import Struct, field

from phalanx.core.program import Atom, Equation, Frame, Program, Var
from phalanx.core.roles import CARRY, FIXED, Role
from phalanx.insight.plans.matrix_products import has_size
from phalanx.primitives.contract import dot_general

__all__ = ["Origin", "Sides", "in_a_run", "moved_as", "sides_of"]

Dimensions = tuple[int, ...]


class Sides(Struct, frozen=True):
    """The dimensions of an array over which its first product sums, those that it gives, ``free``,
    and those of the batch, along which each part has a product of its own."""

    summed: Dimensions
    free: Dimensions
    batch: Dimensions

    def cut(self, shape: Sequence[int]) -> Dimensions:
        """The dimensions along one of which it is cut, the first one that can be: those of products
        of their own, as of experts, or those of the longer side, or of a side of several, as of
        heads; none where all sides are alike."""
        if self.batch:
            return self.batch
        sizes = [math.prod([shape[d] for d in side]) for side in (self.free, self.summed)]
        if sizes[0] == sizes[1]:
            sizes = [len(self.free), len(self.summed)]
        return self.free if sizes[0] > sizes[1] else self.summed if sizes[0] < sizes[1] else ()


class Origin(Struct, frozen=True):
    """Of a value: of which input it is made alone, and for each dimension that of the input."""

    number: int
    dims: tuple[int | None, ...]


def sides_of(
    program: Program, state: Set[int], gradients: Set[tuple[int, int]] = frozenset()
) -> Mapping[int, Sides]:
    """The sides of those inputs among ``state`` that are multiplied with something else, in
    products whose results have none of the sizes of ``gradients``."""
    found = _Sides(gradients)
    inputs = [
        Origin(i, tuple(range(v.type.ndim))) if i in state else None
        for i, v in enumerate(program.inputs)
    ]
    _walk(program, inputs, found)
    return found.sides


class _Sides(Struct):
    """The sides that were found, by the number of an input."""

    gradients: Set[tuple[int, int]]
    sides: dict[int, Sides] = field(default_factory=dict[int, Sides])


def _walk(program: Program, inputs: Sequence[Origin | None], found: _Sides) -> list[Origin | None]:
    """Note the products of ``program``; the origins of its outputs."""
    known: dict[Atom, Origin | None] = dict(zip(program.inputs, inputs, strict=True))

    def origin(atom: Atom) -> Origin | None:
        return known.get(atom) if isinstance(atom, Var) else None

    for e in program.equations:
        operands, frame = [origin(a) for a in e.inputs], e.frame
        if frame is not None:
            known.update(zip(e.outputs, _through(frame, operands, found), strict=False))
        elif e.prim is dot_general:
            _note(e, operands, found)
        else:
            known.update(zip(e.outputs, moved_as(e, operands), strict=False))
    return [origin(a) for a in program.outputs]


def _note(e: Equation, operands: Sequence[Origin | None], found: _Sides) -> None:
    """Note a product of a weight with something that is none."""
    if has_size(e, found.gradients):
        return
    for k, (weight, other) in enumerate(zip(operands, reversed(operands), strict=True)):
        if weight is not None and other is None:
            summed, batch = e.params["contract"][k], e.params["batch"][k]
            free = [d for d in range(len(weight.dims)) if d not in (*summed, *batch)]
            sides = [[weight.dims[d] for d in side] for side in (summed, free, batch)]
            of_input = [tuple([d for d in side if d is not None]) for side in sides]
            found.sides.setdefault(weight.number, Sides(*of_input))


def moved_as(e: Equation, operands: Sequence[Origin | None]) -> list[Origin]:
    """What moves or converts one value only."""
    whole = operands[0] if len(operands) == 1 else None
    if whole is None or e.prim.dims is None:
        return []
    dims = e.prim.dims(e.inputs[0].type, **e.params)
    places = dict(zip(dims.operands[0], whole.dims, strict=False))
    (labels,) = dims.results if len(dims.results) == 1 else ((),)
    ndim = e.outputs[0].type.ndim
    padded = [*labels, *[None] * ndim][:ndim]
    return [Origin(whole.number, tuple([places.get(n) for n in padded]))]


def _through(frame: Frame, operands: Sequence[Origin | None], found: _Sides) -> list[Origin | None]:
    """What goes through sub-programs."""
    inside = in_a_run(frame, operands)
    after = [] if inside is None else _walk(frame.programs[0], inside, found)
    return [] if frame.is_loop else after


def in_a_run(frame: Frame, operands: Sequence[Origin | None]) -> Sequence[Origin | None] | None:
    """What a call, or a run of a loop, sees of operands; None of what runs in another way."""
    if frame.is_call:
        return operands
    if not frame.is_loop or len(frame.programs) != 1:
        return None
    return [_in_a_run(x, r) for x, r in zip(operands, frame.ins, strict=True)]


def _in_a_run(whole: Origin | None, role: Role) -> Origin | None:
    """What a run of a loop sees of an operand."""
    if whole is None or role is CARRY:
        return None
    return whole if role is FIXED else Origin(whole.number, whole.dims[1:])
