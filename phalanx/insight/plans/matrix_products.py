"""The products of a training step: which multiply by weights, and what parting weights exchanges.

What is made of state alone by moving or converting is a weight where it is multiplied with what
depends on the batch. A product of two such values that is as large as a weight is the gradient of
one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import NamedTuple

from msgspec import Struct, field

from phalanx.core.primitive import Primitive
from phalanx.core.program import Atom, Equation, Frame, Program, Var
from phalanx.core.roles import CARRY, CHOICE, FIXED, Role
from phalanx.core.types import ArrayType
from phalanx.insight.costs import dearest, runs
from phalanx.insight.plans.dimensions import Dimensions, along_results
from phalanx.primitives.basis import add, reduce_sum
from phalanx.primitives.contract import dot_general
from phalanx.transforms.products import PRODUCTS
from phalanx.transforms.storage import size_in_bytes

__all__ = ["Mark", "Notes", "Products", "has_size", "products_in", "walk"]

Pair = tuple[tuple[int, ...], tuple[int, ...]]  # dimensions of the one operand, and of the other


class Mark(NamedTuple):
    """What a value depends on: the batch; or the state alone, by which it is a weight; whether it
    is a sum of which chips would have parts, were weights or the batch parted among them; of what
    is not made anew in each run of a loop how often it is made; and the dimensions in which it has
    a part of each expert, and those of sequences."""

    batch: bool
    state: bool
    partial: bool = False
    times: float = 1.0
    experts: Dimensions = ()
    sequence: Dimensions = ()


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
        sizes: how many elements weights have, and how many matrices they are in one product.
    """

    gathered: float = 0.0
    gradients: float = 0.0
    reduced: float = 0.0
    sides: dict[int, float] = field(default_factory=dict[int, float])
    largest: float = 0.0
    count: float = 0.0
    sizes: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def can_be_parted(self, count: int) -> bool:
        """Whether all but few weights have a side that divides among ``count`` chips; where there
        is none, there is nothing to part."""
        if count > 1 and not self.sides:
            return False
        whole = sum([n for side, n in self.sides.items() if side % count])
        return whole <= 0.1 * sum(self.sides.values())


def products_in(program: Program, state: Sequence[bool]) -> Products:
    """What the products of ``program`` do, of whose inputs those marked are ``state``."""
    found = Products()
    marks = [Mark(not s, s) for s in state]
    walk(program, marks, 1.0, _Weights(found))
    walk(program, marks, 1.0, _Gradients(found))
    return found


class Notes:
    """What is noted of the products of a program, and of sums of which chips would have parts."""

    products: tuple[Primitive, ...] = PRODUCTS

    def product(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Whether the result of a product, which runs so often, would be partial."""
        raise NotImplementedError

    def summed(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """The same of a sum of the elements of a value."""
        return False

    def total(self, t: ArrayType, often: float) -> None:
        """A sum of parts, of type ``t``."""


class _Weights(Notes):
    """Notes the products by weights, and what they exchange."""

    def __init__(self, found: Products) -> None:
        self.found = found

    def product(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Whether the result would be partial."""
        found = self.found
        weights = [i for i, m in enumerate(marks) if m.state and not m.batch]
        if len(weights) != 1:
            return self.summed(e, marks, often)
        (place,) = weights
        weight = e.inputs[place].type
        found.gathered += min(often, marks[place].times) * size_in_bytes(weight)
        found.largest = max(found.largest, size_in_bytes(weight))
        found.count += often
        contracted, free, many = _sides(e, place, weight)
        found.sizes.add((weight.size, many))
        side = max(contracted, free) if many == 1 else many  # experts are parted, each is whole
        found.sides[side] = found.sides.get(side, 0.0) + often * size_in_bytes(weight)
        # a weight is parted along its longer side: where that is summed over, chips have parts;
        # of square ones every other is parted along the one side
        if many > 1:
            return False
        if contracted > free:
            self.total(e.outputs[0].type, often)
        elif contracted == free > 1:
            self.total(e.outputs[0].type, often / 2)
        return contracted > free

    def summed(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Whether it sums over experts, of which chips would have some."""
        partial = any(m.experts for m in marks) and not _experts(e, marks)
        if partial:
            self.total(e.outputs[0].type, often)
        return partial

    def total(self, t: ArrayType, often: float) -> None:
        """A sum of parts, of type ``t``."""
        self.found.reduced += often * size_in_bytes(t)


def _sides(e: Equation, place: int, weight: ArrayType) -> tuple[int, int, int]:
    """Over how many elements of a weight a product sums, how many it gives of each, and of how many
    matrices; a kernel of a convolution is not parted, and has 1 of all."""
    if e.prim is not dot_general:
        return 1, 1, 1
    summed: Pair = e.params["contract"]
    beside: Pair = e.params["batch"]
    contracted, many = [math.prod([weight.shape[d] for d in p[place]]) for p in (summed, beside)]
    return contracted, weight.size // max(contracted * many, 1), many


def _experts(e: Equation, marks: Sequence[Mark]) -> Dimensions:
    """The dimensions in which the first result has a part of each expert."""
    along = [m.experts for m in marks]
    for k, m in enumerate(marks):
        if e.prim is dot_general and m.state and not m.batch:
            along[k] = e.params["batch"][k]  # matrices that multiply by themselves
    return next(iter(along_results(e, along)), ())


def has_size(e: Equation, sizes: Set[tuple[int, int]]) -> bool:
    """Whether what a product gives has one of the ``sizes`` of weights."""
    beside: Pair = e.params["batch"] if e.prim is dot_general else ((), ())
    many = math.prod([e.inputs[0].type.shape[d] for d in beside[0]])
    return (e.outputs[0].type.size, many) in sizes


class _Gradients(Notes):
    """Notes the products that are gradients of weights, whose sizes are known."""

    def __init__(self, found: Products) -> None:
        self.found = found

    def product(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Whether it is one, of which chips have parts where they have parts of the batch."""
        if not has_size(e, self.found.sizes):
            return False
        if any(m.state for m in marks) or not any(m.batch for m in marks):
            return False
        self.total(e.outputs[0].type, often)
        return True

    def total(self, t: ArrayType, often: float) -> None:
        """Parts of a gradient, of type ``t``."""
        self.found.gradients += often * size_in_bytes(t)


def walk(program: Program, marks: Sequence[Mark], often: float, notes: Notes) -> list[Mark]:
    """Go over ``program``, whose inputs have ``marks``; those of its outputs."""
    known: dict[Atom, Mark] = dict(zip(program.inputs, marks, strict=True))

    def of(atom: Atom) -> Mark:
        return known.get(atom, NOTHING) if isinstance(atom, Var) else NOTHING

    for e in program.equations:
        ins = [of(a) for a in e.inputs]
        frame = e.frame
        if frame is not None:
            outs = _framed(frame, ins, often, notes)
        elif e.prim in notes.products:
            partial = notes.product(e, ins, often)
            experts = _experts(e, ins) if any(m.batch for m in ins) else ()
            mark = Mark(any(m.batch for m in ins), False, partial, experts=experts)
            outs = _along_sequences(e, ins, mark)
        else:
            outs = _along_sequences(e, ins, _moved(e, ins, often, notes))
        known.update(zip(e.outputs, outs, strict=True))
    return [of(a) for a in program.outputs]


def _along_sequences(e: Equation, ins: Sequence[Mark], mark: Mark) -> list[Mark]:
    """``mark`` for each result, with the dimensions in which that has sequences."""
    along = along_results(e, [m.sequence for m in ins])
    return [mark._replace(sequence=dims) for dims in [*along, *[()] * len(e.outputs)]][
        : len(e.outputs)
    ]


def _moved(e: Equation, ins: Sequence[Mark], often: float, notes: Notes) -> Mark:
    batch = any(m.batch for m in ins)
    state = not batch and any(m.state for m in ins)
    times = max([m.times for m in ins if m.state], default=1.0)
    partial = any(m.partial for m in ins)
    experts = _experts(e, ins) if batch else ()
    if e.prim is reduce_sum and notes.summed(e, ins, often):
        return Mark(batch, state, True, times)
    if e.prim is add and partial:
        if all(m.partial for m in ins):  # two sums of parts are one
            notes.total(e.outputs[0].type, -often)
        partial = all(m.partial or not (m.batch or m.state) for m in ins)  # as of what begins at 0
        return Mark(batch, state, partial, times, experts)
    return Mark(batch, state, partial and e.prim.elements.copied, times, experts)


def _framed(frame: Frame, ins: Sequence[Mark], often: float, notes: Notes) -> list[Mark]:
    shown = [m for m, r in zip(ins, frame.ins, strict=True) if r is not CHOICE]
    program, times = dearest(frame), often * runs(frame)
    if not frame.is_loop:
        return walk(program, shown, times, notes)
    shown = [
        m if r is FIXED else _shifted(m, r, -1)._replace(times=times)
        for m, r in zip(shown, frame.body_roles, strict=True)
    ]
    for _ in range(len(shown)):  # what is carried depends on what any run makes it depend on
        after = iter(frame.carried_out(walk(program, shown, 0.0, notes)))
        joined = [
            _either(m, next(after)) if r is CARRY else m
            for m, r in zip(shown, frame.body_roles, strict=True)
        ]
        if joined == shown:
            break
        shown = joined
    outs = walk(program, shown, times, notes)
    carried = [m for m, r in zip(shown, frame.body_roles, strict=True) if r is CARRY]
    types = frame.carried_out(program.output_types)
    for before, after, kind in zip(carried, frame.carried_out(outs), types, strict=True):
        if before.partial and after.partial:  # a sum of them all, over which chips exchange once
            notes.total(kind, often)
    return [_shifted(m, r, 1) for m, r in zip(outs, frame.outs, strict=True)]


def _shifted(m: Mark, role: Role, by: int) -> Mark:
    """The dimensions inside of a loop, by -1, or behind it, where a run has a slice."""
    if not (role.layout and role.layout[0]):
        return m
    experts, sequence = [
        tuple([d + by for d in dims if d + by >= 0]) for dims in (m.experts, m.sequence)
    ]
    return m._replace(experts=experts, sequence=sequence)


def _either(a: Mark, b: Mark) -> Mark:
    batch = a.batch or b.batch
    sequence = tuple(sorted({*a.sequence, *b.sequence}))
    return Mark(
        batch, not batch and (a.state or b.state), a.partial or b.partial, a.times, a.experts,
        sequence,
    )  # fmt: skip
