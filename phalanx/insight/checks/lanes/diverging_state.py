"""State that lanes share, and then do not: updates that each lane makes of what it has alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from msgspec import Struct

from phalanx.base.extended import is_key
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.runs import Loop, Once
from phalanx.core.types import ArrayType
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.lanes.divergence import Parted, Reduced, is_shared
from phalanx.insight.checks.lanes.gradients import GRADIENT, GradientOf, OwnGradient
from phalanx.insight.checks.lanes.lane_flow import Excess, LaneFlow
from phalanx.insight.checks.subject import Subject
from phalanx.insight.flow import Marks, written_on_one_line

__all__ = [
    "Came", "DivergingState", "drifting", "maker", "parted_at", "producer", "replicated",
]  # fmt: skip

P119 = Code(
    "P119",
    "parameters shared by lanes that are updated with what one lane has",
    "params = params - rate * grads  # and only the loss went through pmean",
    "Take lax.pmean of all gradients, and reduce conditions that decide about the update "
    "(lax.pmin). If each lane is meant to have its own parameters, silence this: # phalanx: ok"
    " P119.",
)


class Came(Struct, frozen=True):
    """Of a value: it is made of input number ``of``, which is not the same in all lanes any more
    after the first call."""

    of: int


class DivergingState(Struct, frozen=True):
    """State that lanes do not keep alike: input ``i``, of which output ``o`` is the new value, with
    its ``marks``; those that ``is_first`` come apart although all state is the same at first."""

    i: int
    o: int
    marks: Marks
    is_first: bool


def replicated(
    flow: LaneFlow, outputs: list[Marks], of_state: Sequence[tuple[int, int]]
) -> tuple[list[Marks], list[DivergingState]]:
    """The marks of the outputs where state is the same in all lanes at first, as far as it then
    stays so; and the state that does not."""
    types, roles = flow.lanes.body.input_types, flow.lanes.frame.body_roles
    pairs = [(i, o) for i, o in of_state if not _is_random(types[i])]
    diverging: list[DivergingState] = []
    assumed: set[int] = set()
    while True:
        needed = {i for i, _ in pairs if roles[i].axes}
        if needed != assumed:
            came = {each.i: Came(each.i) for each in diverging}
            outputs, assumed = flow.outputs(frozenset(needed), came), needed
        gone = [
            DivergingState(i, o, outputs[o], not diverging)
            for i, o in pairs
            if outputs[o] & flow.axes
        ]
        if not gone:
            return outputs, diverging
        diverging += gone
        lost = {each.i for each in gone}
        pairs = [pair for pair in pairs if pair[0] not in lost]


def _is_random(t: ArrayType) -> bool:
    """Whether a value may be a key, or the words of one, of which each lane has its own."""
    return is_key(t.dtype) or (t.dtype == np.uint32 and t.ndim > 0)


def drifting(
    subject: Subject, flow: LaneFlow, outputs: Sequence[Marks], diverging: Sequence[DivergingState]
) -> Iterator[Finding]:
    """State that lanes share at first, and that comes apart although they work together."""
    for axis in sorted(flow.axes, key=str):
        if not any([is_shared(m, axis) for m in outputs]) and not _of_first(diverging, axis):
            continue
        first = [each for each in diverging if each.is_first and axis in each.marks]
        yield from _decided_alone(subject, flow, first, axis)
        yield from _driven(subject, flow, diverging, first, axis)
        yield from _own_gradients(subject, flow, outputs, first, axis)


def _of_first(diverging: Sequence[DivergingState], axis: Any) -> bool:
    return any([Reduced(axis) in each.marks for each in diverging])


def _decided_alone(
    subject: Subject, flow: LaneFlow, diverging: Sequence[DivergingState], axis: Any
) -> Iterator[Finding]:
    """Gradients that were reduced, in updates that a number of one lane decides about."""
    for each in diverging:
        for mark in each.marks:
            if type(mark) is Parted and mark.axis == axis:
                yield parted_at(flow, mark)


def parted_at(flow: LaneFlow, mark: Parted) -> Finding:
    n = flow.sizes.get(mark.axis, 1)
    return P119.at(
        mark.number,
        f"each of {n} lanes of {mark.axis!r} decides by a number from its own rows, at "
        f"{mark.place}, about an update of shared parameters: lanes drift apart",
        "Reduce the number, too: lax.pmean of a loss or norm, lax.pmin of a condition. Where each "
        "lane is to decide for itself, say so: # phalanx: ok P119.",
    )


def _driven(
    subject: Subject,
    flow: LaneFlow,
    diverging: Sequence[DivergingState],
    first: Sequence[DivergingState],
    axis: Any,
) -> Iterator[Finding]:
    """Numbers among the state, such as a scale of losses, with which other state comes apart."""
    later = [each.marks for each in diverging if not each.is_first and axis in each.marks]
    body = flow.lanes.body
    for each in first:
        drives = [m for m in later if Came(each.i) in m and Reduced(axis) in m and GRADIENT in m]
        if not drives or body.inputs[each.i].type.size != 1 or GRADIENT in each.marks:
            continue
        equation = maker(body, body.outputs[each.o])
        yield P119.at(
            (equation.location if equation is not None else None) or subject.place,
            f"{subject.input_name(each.i)} is a number that each of {flow.sizes[axis]} lanes of "
            f"{axis!r} changes on its own, and shared parameters are updated with it: lanes drift "
            "apart",
            "Reduce what decides about the number: lax.pmean of a loss, lax.pmin of a condition.",
        )


def _own_gradients(
    subject: Subject,
    flow: LaneFlow,
    outputs: Sequence[Marks],
    diverging: Sequence[DivergingState],
    axis: Any,
) -> Iterator[Finding]:
    """Gradients of a lane's own rows in updates of what all lanes share."""
    roles, body = flow.lanes.frame.body_roles, flow.lanes.body
    updates = [outputs[o] for _, o in subject.state]
    own = [each for each in diverging if _has_own_gradient(each.marks, axis)]
    if any([subject.is_same_in_lanes(each.i) is False for each in own]):
        return  # each lane was given its own
    found = [each for each in own if _is_meant(subject, flow, updates, each, axis)]
    if not found:
        return
    each = found[0]
    equation = maker(body, body.outputs[each.o])
    others = f" (and {len(found) - 1} more)" if found[1:] else ""
    n = flow.sizes[axis]
    how = "comes in" if not roles[each.i].axes else "is"
    yield P119.at(
        (equation.location if equation is not None else None) or subject.place,
        f"{subject.input_name(each.i)}{others} {how} the same in all {n} lanes of {axis!r}, and is "
        "updated here with the gradient of one lane's rows, which nothing reduces over that axis: "
        f"lanes drift apart, and what the first one has learned from 1/{n} of the data is kept",
    )


def _has_own_gradient(marks: Marks, axis: Any) -> bool:
    """Whether a value is made of gradients of a lane's own rows, other than those of a reduced
    loss, of which more is said."""
    of_reduced = [m for m in marks if type(m) is Excess and axis in m.axes]
    return OwnGradient(axis) in marks and not of_reduced


def _is_meant(
    subject: Subject, flow: LaneFlow, updates: Sequence[Marks], each: DivergingState, axis: Any
) -> bool:
    """Whether the program says that lanes are to share what came apart: it reduces the loss,
    or other gradients with it, or gives one value to all lanes."""
    roles = flow.lanes.frame.body_roles
    if not roles[each.i].axes:
        return True
    of = [m.loss for m in each.marks if type(m) is GradientOf]
    if subject.is_same_in_lanes(each.i) and not flow.summed.isdisjoint(of):
        return True
    return any([GRADIENT in m and is_shared(m, axis) for m in updates])


def maker(body: Program, atom: Atom) -> Equation | None:
    """The equation that made ``atom``, in a loop the one that makes it there."""
    equation = producer(body, atom)
    frame = equation.frame if equation is not None else None
    if equation is None or frame is None or not isinstance(frame.runs, Loop | Once):
        return equation
    o, inside = equation.outputs.index(cast(Var, atom)), frame.programs[0]
    if len(inside.outputs) != len(equation.outputs) or written_on_one_line(inside):
        return equation
    return maker(inside, inside.outputs[o]) or equation


def producer(body: Program, atom: Atom) -> Equation | None:
    """The equation of ``body`` that made ``atom``."""
    return next((e for e in reversed(body.equations) if atom in e.outputs), None)
