"""Mistakes between lanes: collectives that do not say what is meant, randomness that is shared.

One pass over the body of a mapped function follows, for every value, the axes along which it
differs from lane to lane, and what else of it matters there.

A derivative inside a mapped function is that of the sum over all lanes. Of a loss that a sum or
mean has made the same in all lanes it is therefore *n* times what one lane has to do with the
loss. The mean over lanes of such gradients is that of what lanes have in common, and their sum is
*n* times that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import index
from typing import Any

from msgspec import Struct

from phalanx.base.source import Location
from phalanx.core.program import Atom, Equation, Frame, Literal, Program, Var
from phalanx.core.runs import Lanes, Runs
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.lanes.divergence import (
    Reduced,
    Sent,
    is_shared,
    own_gradients,
    own_no_more,
    parting,
    parts,
    still_diverging,
)
from phalanx.insight.checks.lanes.gradients import (
    BEGUN,
    GRADIENT,
    P120,
    SCALELESS,
    Beginnings,
    GradientOf,
    Loss,
    Total,
    is_one,
)
from phalanx.insight.checks.subject import MappedLanes, Subject, is_unnamed
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.primitives.basis import broadcast, convert, mul
from phalanx.primitives.collective import pmax, pmin, psum, psum_scatter
from phalanx.primitives.elementwise import div
from phalanx.primitives.generators import rng_bit_generator
from phalanx.primitives.random_bits import threefry2x32
from phalanx.primitives.sort import sort
from phalanx.primitives.vary import pvary
from phalanx.transforms.replication import divergences, lines_of

__all__ = ["INPUT", "Excess", "LaneFlow", "unreachable_collectives"]

P101 = Code(
    "P101",
    "a collective that some lanes may not reach",
    'lax.cond(x[0] > 0, lambda x: lax.psum(x, "i"), lambda x: x, x)',
    "Let all lanes take the same decision: reduce the condition (lax.pmax of it), or move the "
    "collective out of the branch or loop and choose between results with jnp.where.",
)
P103 = Code(
    "P103",
    "a sum over an axis of a value that is already the same along it",
    'lax.psum(lax.pmean(x, "i"), "i")',
    "Remove one of the two reductions, or use pmean, which does not change such a value.",
)
P104 = Code(
    "P104",
    "a gradient inside a mapped function of a loss that was reduced over its axis",
    'grad(lambda w: lax.psum(loss(w, x), "i"))(w)',
    "Differentiate the loss of one lane, without psum or pmean, and take pmean of the "
    "gradients; the loss itself can be reduced afterwards. With shard_map, gradients of "
    "replicated arguments are already those of the reduced loss.",
)
P107 = Code(
    "P107",
    "the same random numbers in every lane",
    "pmap(lambda key, x: x + random.normal(key, x.shape), in_axes=(None, 0))",
    "Give each lane a key of its own: pass random.split(key, n) mapped over axis 0, or use "
    "random.fold_in(key, lax.axis_index(axis)) inside.",
)


class Input(Struct, frozen=True):
    """A value depends on an argument, so it is no constant."""


class Excess(Struct, frozen=True):
    """A value is the gradient of what was reduced over ``axes`` at ``place``, ``n`` times
    what one lane has to do with it."""

    axes: tuple[Any, ...]
    n: int
    place: Location


class Seed(Struct, frozen=True):
    """A value is a cotangent, made of that of a loss of which each lane has its own."""


class Summed(Struct, frozen=True):
    """A value is the gradient, summed over ``axes`` where types know what is replicated, of
    something that was not reduced over them."""

    axes: tuple[Any, ...]


class Apportioned(Struct, frozen=True):
    """Of a value: it is the part of a cotangent that one of all lanes has, given from outside."""


class Sample(Struct, frozen=True):
    """Of a value: its elements are random numbers, drawn at ``place`` alike along ``axes``."""

    axes: tuple[Any, ...]
    place: Location


class DerivedFromSample(Struct, frozen=True):
    """Of a value: it is made of a sample, but not one by one, as a gradient is of parameters."""

    of: Sample


class Row(Struct, frozen=True):
    """Of a value: its elements are those that a lane of ``axis`` was given, or made of them one by
    one."""

    axis: Any


INPUT = Input()
NO_MARKS: Mapping[int, Any] = {}
_SHARE, _SEED = Apportioned(), Seed()


class LaneFlow(Flow):
    """The pass over the body of a mapped function."""

    def __init__(self, subject: Subject, lanes: MappedLanes) -> None:
        super().__init__()
        self.subject = subject
        self.lanes = lanes
        self.sizes = _sizes(lanes.frame.runs)  # of axes; those of lanes in lanes come to them
        self.axes = frozenset(self.sizes)
        self.findings: dict[Finding, None] = {}
        # by location, what was first summed over lanes there, and along which it is the same
        self.met: dict[int, tuple[Equation, list[Any]]] = {}
        self.reduced: set[Any] = set()  # axes over which the user has reduced something
        self.uses: dict[Atom, list[Equation]] = {}
        self.makers: dict[Atom, Equation] = {}
        self.draws = bool(_GENERATORS & lanes.body.primitives)
        self.samples: set[Sample] = set()
        self.rows = {Row(axis) for role in lanes.frame.body_roles for axis in role.axes}
        self.unnamed = is_unnamed(lanes.equation)  # so that lanes may be to see the same numbers
        self.together = any(map(_sends, lanes.body.primitives))
        self.beginnings = Beginnings()
        # losses of which the mean over lanes was taken, a sum, or anything that lanes exchange
        self.averaged: set[int] = set()
        self.summed: set[int] = set()
        self.joined: set[int] = set()

    def inputs(self, alike: frozenset[int] = frozenset()) -> list[Marks]:
        """The marks of the inputs, of which those numbered ``alike`` are taken to be replicated."""
        return [
            frozenset({INPUT}) | (NOTHING if i in alike else r.axes | set(map(Row, r.axes)))
            for i, r in enumerate(self.lanes.frame.body_roles)
        ]

    def outputs(
        self, alike: frozenset[int] = frozenset(), marked: Mapping[int, Any] = NO_MARKS
    ) -> list[Marks]:
        """The marks of the outputs, if inputs have the marks that are ``marked`` of them; what is
        found on the way is in ``findings``."""
        self.findings.clear()
        self.met.clear()
        self.reduced.clear()
        self.averaged.clear()
        self.summed.clear()
        self.joined.clear()
        inputs = self.inputs(alike)
        for i, mark in marked.items():
            inputs[i] |= {mark}
        outputs = self.run(self.lanes.body, inputs)
        for excess in {mark for marks in outputs for mark in marks if type(mark) is Excess}:
            self._report_unaveraged(excess)
        return outputs

    def enter(self, e: Equation, frame: Frame, operands: Sequence[Marks]) -> list[Marks]:
        if isinstance(frame.runs, Lanes):
            self.sizes |= _sizes(frame.runs)
        if self.together:
            pairs = zip(e.inputs, operands, strict=True)
            operands = [m | {BEGUN} if is_one(a) else m for a, m in pairs]
        return super().enter(e, frame, operands)

    def leave(
        self, e: Equation, frame: Frame, operands: Sequence[Marks], carry: Sequence[Marks],
        results: Sequence[Marks],
    ) -> list[Marks]:  # fmt: skip
        several = super().leave(e, frame, operands, carry, results)
        for axis in frame.lanes - self.axes:
            self.sizes.pop(axis, None)
        return parts(e, frame.choices(operands), frame.body_operands(operands), several, self.axes)

    def begin(self, program: Program) -> None:
        if psum not in program.primitives:
            return
        self.makers |= {v: e for e in program.equations for v in e.outputs}
        for e in program.equations:
            for a in e.inputs:
                if type(a) is Var:
                    self.uses.setdefault(a, []).append(e)

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        prim = e.prim
        if prim.named_axes is not None:
            return self._communicated(e, operands)
        if prim.vary is not None:
            return prim.result_varies(operands, e.params)
        marks = NOTHING.union(*operands)
        if self.together and len(e.outputs) == 1:
            marks = self.beginnings.marked(e, operands, marks)
            if not self.beginnings.in_derivative:
                marks = parting(e, operands, marks, self.axes)
            elif GRADIENT in marks:
                marks = own_gradients(marks, self.axes)
            marks = still_diverging(e, operands, marks)
            marks = self._averaged(e, operands, marks)
        if self.draws:
            marks = self._with_samples(e, operands, marks)
        if _SHARE not in marks and not self.path and self._is_share(e):
            return marks | {_SHARE}
        return marks

    def is_exchanged(self, marks: Marks) -> bool:
        """Whether lanes have reduced, or gathered, the number itself that has ``marks``."""
        places = [m.place for m in marks if type(m) is Loss]
        return bool(places) and self.joined.issuperset(places)

    def report(self, finding: Finding) -> None:
        """Note a finding, if marks are final."""
        if self.settled:
            self.findings[finding] = None

    def text(self, axes: Sequence[Any]) -> str:
        """The names of ``axes``."""
        return ", ".join(map(repr, axes))

    def _of(self, axes: Sequence[Any]) -> str:
        """To what lanes along ``axes`` belong."""
        if self.unnamed:
            return f" of the vmap at {self.lanes.equation.location}"
        return f" of {self.text(axes)}"

    def count(self, axes: Sequence[Any]) -> int:
        """How many lanes there are along ``axes``."""
        return math.prod(self.sizes.get(axis, 1) for axis in axes)

    # ---- collectives ----

    def _communicated(self, e: Equation, operands: Sequence[Marks]) -> Sequence[Marks]:
        results = e.prim.result_varies(operands, e.params)
        several = [results] * len(e.outputs) if isinstance(results, frozenset) else list(results)
        if e.prim is pvary and type(e.inputs[0]) is Literal:
            begun = {_SEED, BEGUN} if is_one(e.inputs[0]) else {_SEED}
            return [marks | begun for marks in several]
        if not _communicates(e):
            return several
        here = [a for a in e.axes if a in self.sizes]
        self.joined.update([m.place for m in NOTHING.union(*operands) if type(m) is Loss])
        if e.prim in (psum, psum_scatter) and e.params.get("groups") is None and here:
            pairs = zip(several, operands, e.inputs, e.outputs, strict=True)
            several = [self._summed(e, here, *each) for each in pairs]
        reduced = frozenset([Reduced(a) for a in here])
        if e.prim in _SAME_FOR_ALL and e.params.get("groups") is None:
            return [marks | reduced for marks in several]
        marks_here = reduced.union([Sent(a) for a in here])
        return [own_no_more(marks) | marks_here for marks in several]

    def _summed(
        self, e: Equation, axes: list[Any], result: Marks, operand: Marks, x: Atom, y: Var
    ) -> Marks:
        alike = [a for a in axes if a not in operand]
        primal, repeated = self.met.get(id(e.location), (e, alike))
        if primal is not e and e.location is not None:
            # what was made of a sum, and so comes from its line, is the derivative
            own = tuple([a for a in alike if a not in repeated])
            if own and _SHARE not in operand:
                return result | {Excess(own, self.count(own), e.location)}
            return result
        self.met[id(e.location)] = e, alike
        if _SEED in operand and self.reduced.isdisjoint(axes):
            return result - {_SEED} | {Summed(tuple(axes))} | self._totals(e, operand, axes)
        self.reduced.update(axes)
        for sample in operand if alike else ():
            if type(sample) is Sample and set(alike).issubset(sample.axes):
                self._report_same_sample(sample)
        summed = [m for m in operand if type(m) is Summed and set(m.axes).issuperset(alike)]
        excess = [m for m in operand if type(m) is Excess and not set(m.axes).isdisjoint(axes)]
        is_mean = self._is_mean(x, y, self.count(axes))
        if excess and not is_mean:
            self._report_summed(e, excess[0])
        if summed and alike and is_mean:
            self._report_no_mean(e, alike)
        if alike and INPUT in operand and not is_mean and not excess:
            self._report_repeated(e, alike)
        return self._joined(e, operand, result.difference(excess, summed), axes, is_mean)

    def _joined(
        self, e: Equation, operand: Marks, result: Marks, axes: list[Any], is_mean: bool
    ) -> Marks:
        """What a sum over lanes, or their mean, makes of losses and of their gradients."""
        losses = [m for m in operand if type(m) is Loss]
        self.summed.update([m.place for m in losses])
        self.averaged.update([m.place for m in losses if m.is_mean and is_mean])
        gone = [m for m in result if is_mean and type(m) is Total]
        totals = NOTHING if is_mean else self._totals(e, operand, axes)
        return own_no_more(result).difference(gone) | totals

    def _totals(self, e: Equation, operand: Marks, axes: list[Any]) -> Marks:
        n, place = self.count(axes), self.place(e) or self.subject.place
        losses = [m.loss for m in operand if type(m) is GradientOf] if n > 1 else []
        return frozenset([Total(loss, tuple(axes), n, place) for loss in losses])

    def _averaged(self, e: Equation, operands: Sequence[Marks], marks: Marks) -> Marks:
        """The marks of the result of ``e``, which may make means of sums of gradients."""
        if e.prim not in (mul, div):
            return marks
        totals = [m for m in marks if type(m) is Total]
        gone = [m for m in totals if self._makes_mean(m, e, operands)]
        is_quotient = any([all([m in o for o in operands]) for m in gone])
        return marks.difference(gone) | ({SCALELESS} if is_quotient else NOTHING)

    def _makes_mean(self, total: Total, e: Equation, operands: Sequence[Marks]) -> bool:
        if _divides_by(e, total.n, or_multiple=True):
            return True
        others = [(a, m) for a, m in zip(e.inputs, operands, strict=True) if total not in m]
        if not others:
            return e.prim is div  # of one sum by another
        ((atom, marks),) = others
        maker = self.makers.get(atom)
        while maker is not None and (maker.prim.elements.copied or maker.prim is convert):
            maker = self.makers.get(maker.inputs[0])
        counted = maker is not None and _divides_by(maker, total.n, or_multiple=True)
        return counted or any([is_shared(marks, a) for a in total.axes])

    def _is_mean(self, x: Atom, y: Var, n: int) -> bool:
        """Whether the sum ``y`` of ``x`` over ``n`` lanes is only used for their mean."""
        uses, maker = self.uses.get(y, []), self.makers.get(x)
        if uses and all(_divides_by(use, n) for use in uses):
            return True
        if maker is None or not _divides_by(maker, n):
            return False
        whole = self.makers.get(maker.inputs[0])
        return whole is None or whole.prim is not psum  # which was divided to be a mean itself

    def _is_share(self, e: Equation) -> bool:
        """Whether a cotangent from outside is divided among the lanes, which have all the same."""
        inputs = self.lanes.body.inputs
        return (
            len(e.inputs) == 2
            and type(e.inputs[1]) is Literal
            and e.inputs[0] in inputs
            and any(_divides_by(e, n) for n in self._products())
        )

    def _products(self) -> set[int]:
        return {math.prod(self.sizes.values()), *self.sizes.values()} - {1}

    # ---- random numbers ----

    def _with_samples(self, e: Equation, operands: Sequence[Marks], marks: Marks) -> Marks:
        if e.prim in _GENERATORS and not e.params.get("once"):
            marks = marks.difference(self.rows)
            alike = [a for a, size in self.sizes.items() if a not in marks and size > 1]
            place = self.place(e)
            if alike and place is not None:
                self.samples.add(sample := Sample(tuple(sorted(alike, key=str)), place))
                return marks | {sample}
            return marks
        if not _is_elementwise(e):
            derived = map(DerivedFromSample, marks & self.samples)
            return marks.difference(self.samples, self.rows).union(derived)
        for sample in marks & self.samples if self.samples else ():
            if self._meets_lanes(sample, e, operands):
                self._report_same_sample(sample)
                marks -= {sample}
        return marks

    def _meets_lanes(self, sample: Sample, e: Equation, operands: Sequence[Marks]) -> bool:
        """Whether an array of samples meets one, of the same shape, that differs from lane to
        lane and is not made of them; that is what these were given, where their axis has no
        name."""
        if e.outputs[0].type.size <= 1:
            return False
        others = [
            m
            for a, m in zip(e.inputs, operands, strict=True)
            if type(a) is Var
            and m.isdisjoint({sample, DerivedFromSample(sample)})
            and a.type.shape == e.outputs[0].type.shape
        ]
        axes = map(Row, sample.axes) if self.unnamed else sample.axes
        return any(axis in m for axis in axes for m in others)

    # ---- what is said ----

    def totals(self, outputs: Sequence[Marks]) -> Iterator[Finding]:
        """Sums of gradients that went into ``outputs``, which are new values of state."""
        found = {m for marks in outputs for m in marks if type(m) is Total}
        if any([SCALELESS in marks and found.isdisjoint(marks) for marks in outputs]):
            return
        for m in found:
            if m.loss in self.averaged:
                yield P120.at(
                    m.place,
                    f"the gradients of a loss are summed here over the {m.n} lanes of "
                    f"{self.text(m.axes)}, but the loss is averaged: updates are {m.n} times as "
                    "large as with averaged gradients",
                )

    def _report_unaveraged(self, excess: Excess) -> None:
        self.report(
            P104.at(
                excess.place,
                f"the gradient of a value that was reduced here over {self.text(excess.axes)} is "
                f"returned or used in an update by each of {excess.n} lanes without a reduction: "
                f"it is {_times(excess.n)} what that lane contributes, and not the mean over lanes",
            )
        )

    def _report_summed(self, e: Equation, excess: Excess) -> None:
        place = self.place(e) or excess.place
        self.report(
            P104.at(
                place,
                f"the gradient of a value that was reduced over {self.text(excess.axes)}, at "
                f"{excess.place}, is summed over it, so the gradient is {_times(excess.n)} too "
                "large",
            )
        )

    def _report_no_mean(self, e: Equation, alike: Sequence[Any]) -> None:
        n, place = self.count(alike), self.place(e) or self.subject.place
        self.report(
            P104.at(
                place,
                f"the mean over {self.text(alike)} of a gradient with respect to what is "
                "replicated, which is the sum over all lanes already: it stays "
                f"{_times(n)} the mean",
                "Differentiate lax.pmean of the loss: its gradient is the mean over lanes, and "
                "needs no reduction.",
            )
        )

    def _report_repeated(self, e: Equation, alike: Sequence[Any]) -> None:
        n, place = self.count(alike), self.place(e) or self.subject.place
        self.report(
            P103.at(
                place,
                f"{e.prim.name} over {self.text(alike)} of a value that is the same in all "
                f"{n} lanes: the sum is {_times(n)} the value",
            )
        )

    def _report_same_sample(self, sample: Sample) -> None:
        n = self.count(sample.axes)
        self.report(
            P107.at(
                sample.place,
                f"the key is the same in all {n} lanes{self._of(sample.axes)}, so each of "
                "them computes with the same random numbers",
            )
        )


_GENERATORS = frozenset({threefry2x32, rng_bit_generator})
_SAME_FOR_ALL = frozenset({psum, pmax, pmin})


def _sizes(runs: Runs) -> dict[Any, int]:
    """How many lanes there are along each axis."""
    if isinstance(runs, Lanes) and runs.total is not None:
        return {axis: index(runs.total) for axis, _ in runs.axes}
    return dict(runs.axes) if isinstance(runs, Lanes) else {}


def _times(n: int) -> str:
    return f"{n} times" if n > 1 else "as many times as there are lanes"


def _sends(prim: Any) -> bool:
    return prim.named_axes is not None and prim.named_axes.communicates


def _communicates(e: Equation) -> bool:
    return _sends(e.prim)


def _is_elementwise(e: Equation) -> bool:
    """Whether each element of a result is made of one of each operand, or is one; to sort by
    random numbers makes a permutation, which lanes may share."""
    if e.prim is sort:
        return False
    repeats = e.prim is broadcast and e.outputs[0].type.size > e.inputs[0].type.size
    return (e.prim.elements.fused or e.prim.elements.copied) and not repeats


def _divides_by(e: Equation, n: int, or_multiple: bool = False) -> bool:
    """Whether an operation divides by ``n``, or multiplies with its inverse; ``or_multiple``: by
    that many for each of some parts."""
    if e.prim not in (div, mul):
        return False
    constants = [a.value for a in e.inputs if type(a) is Literal and a.type.shape == ()]
    if len(constants) != 1 or not constants[0]:
        return False
    divisor = abs(complex(constants[0]) if e.prim is div else 1 / complex(constants[0]))
    if or_multiple and not (e.prim is mul and _is_rate(1 / divisor)):
        wanted = n * max(round(divisor / n), 1)
    else:
        wanted = n
    return abs(divisor - wanted) <= 1e-3 * wanted


def _is_rate(factor: float) -> bool:
    """Whether a factor has two digits, as rates have, and inverses of numbers of rows do not."""
    return math.isclose(factor, float(f"{factor:.1e}"), rel_tol=1e-6)


def unreachable_collectives(subject: Subject, flow: LaneFlow) -> Iterator[Finding]:
    """Conditions and loops about which lanes decide differently, around a collective."""
    inputs = [m & flow.axes for m in flow.inputs()]
    for e, axes in divergences(flow.lanes.body, inputs):
        inner = [x for p in e.programs for x in p.walk() if x.prim.subprograms is None]
        collectives = [x for x in inner if x.axes & axes and _communicates(x)]
        named = ", ".join(sorted({x.prim.name for x in collectives}))
        yield P101.at(
            e.location or subject.place,
            f"lanes of {flow.text(sorted(axes, key=str))} may decide differently here, around "
            f"{named} at {lines_of(collectives)}: other libraries would hang; here the lanes that "
            "do not come there contribute their values all the same",
        )
