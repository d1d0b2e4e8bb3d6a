"""Results of mapped functions that lanes have not agreed on: losses, statistics, promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, cast

from msgspec import Struct

from phalanx.base import dtypes
from phalanx.core.manual import Typed
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.roles import CARRY
from phalanx.core.runs import Loop, Once
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.lanes.divergence import Parted, Reduced, Sent, is_shared
from phalanx.insight.checks.lanes.diverging_state import (
    DivergingState,
    drifting,
    maker,
    parted_at,
    producer,
    replicated,
)
from phalanx.insight.checks.lanes.gradients import GRADIENT, OwnGradient
from phalanx.insight.checks.lanes.lane_flow import INPUT, LaneFlow, unreachable_collectives
from phalanx.insight.checks.subject import Subject
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.primitives import add, convert, max, min, reduce_sum, select
from phalanx.transforms.replication import culprits

__all__ = ["between_lanes"]

P102 = Code(
    "P102",
    "a result that out_specs declare replicated although it is not",
    "shard_map(lambda x: x.sum(), in_specs=P('i'), out_specs=P(), check_vma=False)",
    "Reduce the result over the axis (psum, pmean), or name the axis in out_specs. Without "
    "check_vma=False this is an error.",
)
P105 = Code(
    "P105",
    "a loss or metric that is returned without a reduction over lanes",
    "return params, loss  # and only gradients went through pmean",
    "Return lax.pmean (or psum) of it, so that it covers the whole batch. If the host averages "
    "over lanes, silence this: # phalanx: ok P105.",
)
P108 = Code(
    "P108",
    "running statistics that each lane updates with its own rows",
    "mean = 0.9 * mean + 0.1 * x.mean(0)  # of the rows of one lane",
    "Take lax.pmean of the batch statistics before they update the running ones.",
)


def between_lanes(subject: Subject) -> Iterator[Finding]:
    """What is wrong between the lanes of mapped functions."""
    for lanes in subject.mapped:
        flow = LaneFlow(subject, lanes)
        if not flow.axes:
            continue
        outputs = flow.outputs()
        yield from flow.findings
        missed = [*unreachable_collectives(subject, flow)]
        yield from missed
        yield from _untrue_promises(subject, flow, outputs)
        if lanes is subject.lanes:  # whose results nobody reduces before they are returned
            yield from flow.totals([outputs[o] for _, o in subject.state])
            outputs, diverging = replicated(flow, outputs, subject.state)
            yield from _unreduced(subject, flow, outputs)
            yield from _own_statistics(subject, flow, outputs, diverging)
            if not missed:
                yield from drifting(subject, flow, outputs, diverging)


def _untrue_promises(subject: Subject, flow: LaneFlow, outputs: list[Marks]) -> Iterator[Finding]:
    """Results that are not cut along an axis along which they differ, where nobody checked."""
    frame, body = flow.lanes.frame, flow.lanes.body
    for atom, role, marks in zip(body.outputs, frame.outs, outputs, strict=True):
        for axis in sorted((flow.axes & marks) - role.axes, key=str):
            parted = [m for m in marks if type(m) is Parted and m.axis == axis]
            if type(axis) is Typed:
                continue
            if parted:
                yield parted_at(flow, parted[0])
            if Sent(axis) in marks:
                continue
            found = culprits(body, [m & flow.axes for m in flow.inputs()], atom, axis)
            place = next((e.location for e in found if e.location), None)
            yield P102.at(
                place or flow.lanes.equation.location or subject.place,
                f"out_specs declare a result replicated along {axis!r}, but it differs there: the "
                "value of one device is taken for all",
            )


def _unreduced(subject: Subject, flow: LaneFlow, outputs: list[Marks]) -> Iterator[Finding]:
    """Numbers that each lane returns for itself, where lanes work together otherwise."""
    frame, body = flow.lanes.frame, flow.lanes.body
    state = {o for _, o in subject.state}
    for axis in sorted(flow.axes, key=str):
        together = [m for m in outputs if Reduced(axis) in m and axis not in m]
        if not together:
            continue
        for o, (atom, role) in enumerate(zip(body.outputs, frame.outs, strict=True)):
            alone = axis in outputs[o] and axis in role.axes and INPUT in outputs[o]
            number = _number(body, atom, axis)
            if o in state or not alone or number is None or flow.is_exchanged(outputs[o]):
                continue
            equation = maker(*number)
            place = equation.location if equation is not None else None
            yield P105.at(
                place or subject.place,
                f"this number is not reduced over {axis!r}: each of {flow.sizes[axis]} lanes "
                f"returns its own, of 1/{flow.sizes[axis]} of the data, while other results cover "
                "all of it",
            )


def _number(body: Program, atom: Atom, axis: Any) -> tuple[Program, Atom] | None:
    """Where ``atom`` of ``body`` is made, if it is a number, or one of each run of a loop in which
    lanes of ``axis`` work together."""
    if not dtypes.is_floating(atom.type.dtype):
        return None
    if atom.type.size == 1:
        return body, atom
    equation = producer(body, atom)
    frame = None if equation is None else equation.frame
    if equation is None or frame is None or not isinstance(frame.runs, Loop | Once):
        return None
    o = equation.outputs.index(cast(Var, atom))
    role, inside = frame.outs[o], frame.programs[0]
    if role is CARRY or axis not in inside.axes:
        return None
    return _number(inside, inside.outputs[o], axis)


def _own_statistics(
    subject: Subject, flow: LaneFlow, outputs: list[Marks], diverging: Sequence[DivergingState]
) -> Iterator[Finding]:
    """Running means that lanes do not share, where they share other results."""
    body = flow.lanes.body
    for each in diverging:
        i, o, axes = each.i, each.o, flow.axes & outputs[each.o]
        if any([_is_of_gradients(each.marks, axis) for axis in axes]):
            continue  # as the momentum is
        shared = [m for m in outputs if any(is_shared(m, a) for a in axes)]
        if shared and _is_running_mean(body, i, o):
            update = maker(body, body.outputs[o])
            place = update.location if update is not None else None
            yield P108.at(
                place or subject.place,
                f"{subject.input_name(i)} is a running mean that each lane of "
                f"{flow.text(sorted(axes, key=str))} updates with its own rows alone, while other "
                "state is the same in all lanes: lanes drift apart, and the first one's is kept",
            )


def _is_of_gradients(marks: Marks, axis: Any) -> bool:
    """Whether a value is made of gradients that lanes have alone, or of parts that they sent."""
    return OwnGradient(axis) in marks or (GRADIENT in marks and Sent(axis) in marks)


def _is_running_mean(body: Program, i: int, o: int) -> bool:
    """Whether output ``o`` is input ``i``, of which a part gave way to a mean over rows that does
    not depend on it, as a gradient and its norm would."""

    def found() -> list[Marks]:
        inputs = [frozenset({Same(n), Retained(n), Needed(n)}) for n in range(len(body.inputs))]
        return _MeanFlow().run(body, inputs)

    return Blended(i) in memoize_on(body, "means", found)[o]


class Same(Struct, frozen=True):
    """Of a value: it is input number ``of``."""

    of: int


class Retained(Struct, frozen=True):
    """Of a value: it is made of input number ``of``, element by element, and no sum with it."""

    of: int


class Needed(Struct, frozen=True):
    """Of a value: it depends on input number ``of``."""

    of: int


class Averaged(Struct, frozen=True):
    """Of a value: it is made of a sum over rows, which depend on the inputs ``of``; ``is_of_rows``:
    certainly, as they are along the first dimension."""

    of: frozenset[int]
    is_of_rows: bool


class Blended(Struct, frozen=True):
    """Of a value: elements of it are made of one of input number ``of`` and of a mean over rows,
    other than those that lie beside each other, as in a buffer that is filled."""

    of: int


class _MeanFlow(Flow):
    """Which values are inputs, changed by means over rows."""

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks:
        marks = NOTHING.union(*operands)
        needed = frozenset([m for m in marks if type(m) is Needed])
        if e.prim is reduce_sum:
            is_of_rows = 0 in e.params["dims"] and e.outputs[0].type.ndim > 0
            return needed | {Averaged(frozenset([m.of for m in needed]), is_of_rows)}
        if e.prim.elements.copied or e.prim is convert:
            return marks
        if not e.prim.elements.fused or e.prim in (min, max):
            return needed
        if e.prim is select:  # by what it is chosen, no result is made of
            return needed | NOTHING.union(*operands[1:])
        blended = _blended(operands)
        if e.prim is add:  # to a sum so far, of which nothing is given up
            for one, other in permutations(operands):
                whole = [m.of for m in one if type(m) is Same and Retained(m.of) not in other]
                marks = marks.difference(map(Retained, whole))
                blended = blended.difference(map(Blended, whole))
        return frozenset([m for m in marks if type(m) is not Same]) | blended


def _blended(operands: Sequence[Marks]) -> Marks:
    """What comes of ``operands`` of which one is made of an input and another of a mean."""
    return frozenset(
        [
            Blended(m.of)
            for one, other in permutations(operands, 2)
            for m in one
            if type(m) is Retained
            if any([type(a) is Averaged and (a.is_of_rows or m.of not in a.of) for a in other])
        ]
    )
