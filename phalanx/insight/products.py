"""The products of a training step: which multiply by weights, and what parting weights exchanges.

What is made of state alone by moving or converting is a weight where it is multiplied with what
depends on the batch. A product of two such values that is as large as a weight is the gradient of
one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, field

from phalanx.core.program import Atom, Equation, Frame, Program, Var, plain
from phalanx.core.roles import CARRY, CHOICE
from phalanx.core.types import ArrayType
from phalanx.insight.costs import dearest, runs
from phalanx.ops.basis import add
from phalanx.ops.contract import dot_general
from phalanx.transforms.products import PRODUCTS
from phalanx.transforms.storage import size_in_bytes

__all__ = ["Products", "products_in"]


class Mark(NamedTuple):
    """What a value depends on: the batch; or the state alone, by which it is a weight; and
    whether it is a sum of which chips would have parts, were weights parted among them."""

    batch: bool
    state: bool
    partial: bool = False


NOTHING = Mark(False, False)


class Products(Struct):
    """What the products of a step by weights exchange, in all.

    Attributes:
        gathered: bytes of weights that products read: what chips gather that have parts of them.
        gradients: bytes of the gradients of weights.
        reduced: bytes of results that are sums over what weights are parted by.
        sides: bytes of weights, by the length of the side along which they are parted.
        largest: the bytes of the largest weight.
        count: how many products by weights run.
        sizes: how many elements weights have.
    """

    gathered: float = 0.0
    gradients: float = 0.0
    reduced: float = 0.0
    sides: dict[int, float] = field(default_factory=dict[int, float])
    largest: float = 0.0
    count: float = 0.0
    sizes: set[int] = field(default_factory=set[int])

    def can_be_parted(self, count: int) -> bool:
        """Whether all but few weights have a side that divides among ``count`` chips."""
        whole = sum([n for side, n in self.sides.items() if side % count])
        return whole <= 0.1 * sum(self.sides.values())


def products_in(program: Program, state: Sequence[bool]) -> Products:
    """What the products of ``program`` do, of whose inputs those marked are ``state``."""
    found = Products()
    marks = [Mark(not s, s) for s in state]
    _walk(program, marks, 1.0, _Weights(found))
    _walk(program, marks, 1.0, _Gradients(found))
    return found


class _Weights(Struct):
    """Notes the products by weights, and what they exchange."""

    found: Products

    def product(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Whether the result would be partial."""
        found = self.found
        weights = [i for i, m in enumerate(marks) if m.state and not m.batch]
        if len(weights) != 1:
            return False
        (place,) = weights
        weight = plain(e.inputs[place].type)
        found.gathered += often * size_in_bytes(weight)
        found.largest = max(found.largest, size_in_bytes(weight))
        found.count += often
        found.sizes.add(weight.size)
        contracted, given = _sides(e, place, weight)
        side = max(contracted, given)
        found.sides[side] = found.sides.get(side, 0.0) + often * size_in_bytes(weight)
        # a weight is parted along its longer side: where that is summed over, chips have parts;
        # of square ones every other is parted along the one side
        if contracted > given:
            self.total(e.outputs[0].type, often)
        elif contracted == given > 1:
            self.total(e.outputs[0].type, often / 2)
        return contracted > given

    def total(self, t: ArrayType, often: float) -> None:
        """A sum of parts, of type ``t``."""
        self.found.reduced += often * size_in_bytes(t)


def _sides(e: Equation, place: int, weight: ArrayType) -> tuple[int, int]:
    """Over how many elements of a weight a product sums, and how many it gives of each; a kernel of
    a convolution is not parted, and has 1 of both."""
    if e.prim is not dot_general:
        return 1, 1
    contract: tuple[tuple[int, ...], ...] = e.params["contract"]
    contracted = math.prod([weight.shape[d] for d in contract[place]])
    return contracted, weight.size // max(contracted, 1)


class _Gradients(Struct):
    """Notes the products that are gradients of weights, whose sizes are known."""

    found: Products

    def product(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Never partial: they are summed with their like."""
        out = e.outputs[0].type
        of_a_weight = out.size in self.found.sizes and not any(e.params.get("batch", ()))
        if of_a_weight and any(m.batch for m in marks) and not any(m.state for m in marks):
            self.found.gradients += often * size_in_bytes(out)
        return False

    def total(self, t: ArrayType, often: float) -> None:
        """Nothing is partial."""


Notes = _Weights | _Gradients


def _walk(program: Program, marks: Sequence[Mark], often: float, notes: Notes) -> list[Mark]:
    """Go over ``program``, whose inputs have ``marks``; those of its outputs."""
    known: dict[Atom, Mark] = dict(zip(program.inputs, marks, strict=True))

    def of(atom: Atom) -> Mark:
        return known.get(atom, NOTHING) if isinstance(atom, Var) else NOTHING

    for e in program.equations:
        ins = [of(a) for a in e.inputs]
        frame = e.frame
        if frame is not None:
            outs = _framed(frame, ins, often, notes)
        elif e.prim in PRODUCTS:
            partial = notes.product(e, ins, often)
            outs = [Mark(any(m.batch for m in ins), False, partial)]
        else:
            outs = [_moved(e, ins, often, notes)] * len(e.outputs)
        known.update(zip(e.outputs, outs, strict=True))
    return [of(a) for a in program.outputs]


def _moved(e: Equation, ins: Sequence[Mark], often: float, notes: Notes) -> Mark:
    batch = any(m.batch for m in ins)
    state = not batch and any(m.state for m in ins)
    partial = e.prim is add and all(m.partial for m in ins)
    if partial:  # two sums of parts are one
        notes.total(plain(e.outputs[0].type), -often)
    moved = e.prim.elements.copied and any(m.partial for m in ins)
    return Mark(batch, state, partial or moved)


def _framed(frame: Frame, ins: Sequence[Mark], often: float, notes: Notes) -> list[Mark]:
    shown = [m for m, r in zip(ins, frame.ins, strict=True) if r is not CHOICE]
    program = dearest(frame)
    if frame.is_loop:  # what is carried depends on what any run makes it depend on
        for _ in range(len(shown)):
            after = iter(frame.carried_out(_walk(program, shown, 0.0, notes)))
            joined = [
                _either(m, next(after)) if r is CARRY else m
                for m, r in zip(shown, frame.seen, strict=True)
            ]
            if joined == shown:
                break
            shown = joined
    return _walk(program, shown, often * runs(frame), notes)


def _either(a: Mark, b: Mark) -> Mark:
    batch = a.batch or b.batch
    return Mark(batch, not batch and (a.state or b.state))
