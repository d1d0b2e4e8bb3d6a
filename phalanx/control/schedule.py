"""The schedule of lanes: a program is cut where lanes meet, and runs a few lanes at a time between.

Lanes meet in what communicates over their axis. What lies between two such meetings is a segment
(``control/segment.py``); what all lanes share is computed once, outside of segments. An operation
in whose programs lanes meet, such as a loop with a ``psum`` in it, is met by all lanes, and its
programs are scheduled for themselves.

How many meetings an equation waits for is its *stage*. It runs in the first in which it can,
unless less is to be kept of each lane if it runs later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from phalanx.control.call import call
from phalanx.control.framed import varying_inside, varying_values
from phalanx.control.isolated import isolated
from phalanx.control.numbered import hoist_axis_index
from phalanx.control.segment import fold_over, segment
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.region import ChunkedLanes
from phalanx.core.runs import Marks
from phalanx.primitives.barrier import optimization_barrier
from phalanx.transforms.dce import live_equations
from phalanx.transforms.storage import size_in_bytes


class DeviceLanes(Struct, frozen=True):
    """The ``size`` lanes of ``axis`` that a device has.

    They meet in equations that communicate over any of the axes ``over``. ``at_once(program, own,
    size)`` is how many of ``size`` lanes run a segment together, if each lane has its own value of
    the inputs that ``own`` marks. ``isolated``: what is compiled of a lane, or of what all share,
    depends on nothing around it.
    """

    axis: Any
    size: int
    over: frozenset[Any]
    at_once: Callable[[Program, Marks, int], int]
    isolated: bool = False

    def meet_in(self, e: Equation) -> bool:
        """Whether an equation is one for all lanes."""
        return not self.over.isdisjoint(e.axes)


def scheduled(program: Program, lanes: DeviceLanes, own: Marks) -> Program:
    """``program`` with segments for ``lanes``, which have inputs of their ``own``.

    It is ``program`` itself where all lanes run together everywhere.
    """
    key = ("schedule", lanes, own)
    return memoize_on(program, key, lambda: _scheduled(program, lanes, own)) or program


def chunks_of(program: Program, lanes: DeviceLanes) -> list[ChunkedLanes]:
    """The segments of a schedule for ``lanes``, those of sub-programs included."""
    axis = lanes.axis
    found: list[ChunkedLanes] = []
    for e in program.walk():
        if e.prim is segment and e.params["of"] == axis:
            ends = [end for p in e.programs for end in p.equations if fold_over(end, axis)]
            until = tuple([f"{end.prim} at {end.location}" for end in ends])
            found.append(ChunkedLanes(axis, e.params["at_once"], until, lanes.isolated))
    return found


def _scheduled(program: Program, lanes: DeviceLanes, own: Marks) -> Program | None:
    """None where nothing changes."""
    flat = _flat(hoist_axis_index(program, lanes.axis), lanes)
    stages = _Stages(flat, lanes, varying_values(flat, lanes.axis, own))
    equations = list(stages.written())
    if not stages.changed:
        return None
    return flat.update(equations=equations)


def _flat(program: Program, lanes: DeviceLanes) -> Program:
    """``program`` without calls in which lanes meet: with what they call in their place."""
    if not any([_opens(e, lanes) for e in program.equations]):
        return program.update(equations=[*live_equations(program)])
    names: dict[Atom, Atom] = {}
    equations = list(_inlined(program, lanes, names))
    outputs = [names.get(a, a) for a in program.outputs]
    return program.update(equations=equations, outputs=outputs)


def _opens(e: Equation, lanes: DeviceLanes) -> bool:
    """Whether ``e`` is a call whose program communicates over the axis of ``lanes``.

    Such a call is inlined, so that its equations are scheduled one by one. It may be of a function
    with custom rules. Loops and branches are not calls: they stay one meeting.
    """
    return (e.prim is call or e.prim.user_rules is not None) and lanes.meet_in(e)


def _inlined(program: Program, lanes: DeviceLanes, names: dict[Atom, Atom]) -> Iterator[Equation]:
    """The equations with variables of their own, which stand in ``names``."""
    for e in live_equations(program):
        inputs = [names.get(a, a) for a in e.inputs]
        if _opens(e, lanes):
            (inner,) = e.programs  # rules for derivatives are of no use any more
            inside: dict[Atom, Atom] = dict(zip(inner.inputs, inputs, strict=True))
            yield from _inlined(inner, lanes, inside)
            outputs = [inside.get(a, a) for a in inner.outputs]
        else:
            outputs = tuple([Var(v.type) for v in e.outputs])
            yield e.update(inputs=inputs, outputs=outputs)
        names.update(zip(e.outputs, outputs, strict=True))


SHARED, LANES, MEETING = "what all lanes share", "what each lane has", "where lanes meet"


class _Stages:
    """A program by stages; ``own`` are the variables that each lane has or makes for itself."""

    def __init__(self, program: Program, lanes: DeviceLanes, own: set[Atom]) -> None:
        self.program = program
        self.lanes = lanes
        self.own = own
        self.changed = False  # whether any segment runs fewer lanes than there are
        self.uses = Counter([a for e in program.equations for a in e.inputs])
        self.uses.update(program.outputs)
        self.kinds: dict[Equation, str] = {}
        for e in program.equations:
            self.kinds[e] = self._kind(e)
            if self.kinds[e] is LANES:
                self.own.update(e.outputs)  # what all make alike is there when they have run
        self.stages = self._earliest()
        self._wait()

    def _kind(self, e: Equation) -> str:
        if self.own.isdisjoint(e.inputs):
            return SHARED
        return MEETING if self.lanes.meet_in(e) else LANES

    def _earliest(self) -> dict[Equation, int]:
        """The first stage in which each equation can run; effects stay in order."""
        stages: dict[Equation, int] = {}
        there: dict[Atom, int] = {}
        effects = {SHARED: 0, LANES: 0, MEETING: 0}
        for e, kind in self.kinds.items():
            stage = max([there.get(a, 0) for a in e.inputs], default=0)
            after = stage + (kind is MEETING)
            if e.effects:
                stage = max(stage, effects[kind])
                after = stage + (kind is MEETING)
                effects = {SHARED: stage + (kind is not SHARED), LANES: after, MEETING: after}
            stages[e] = stage
            there.update(dict.fromkeys(e.outputs, after))
        return stages

    def _wait(self) -> None:
        """Let lanes wait with what they need later, where no more is kept of them meanwhile."""
        first: dict[Atom, int] = {}  # the stages in which a value is first and last taken
        last: dict[Atom, int] = {}
        makers = {v: e for e, kind in self.kinds.items() if kind is LANES for v in e.outputs}

        def is_only_for(a: Atom, stage: int) -> bool:
            return a in makers and max(last.get(a, 0), self.stages[makers[a]]) < stage

        for e in reversed(self.program.equations):
            stage = min([first[v] for v in e.outputs if v in first], default=self.stages[e])
            if self.kinds[e] is LANES and not e.effects and stage > self.stages[e]:
                more = [a for a in {*e.inputs} if is_only_for(a, stage)]
                if _bytes(more) <= _bytes(e.outputs):
                    self.stages[e] = stage
            stage = self.stages[e]
            for a in e.inputs:
                first[a] = min(first.get(a, stage), stage)
                last[a] = max(last.get(a, stage), stage)

    # ---- the schedule ----

    def written(self) -> Iterator[Equation]:
        """The equations, with a segment in each stage where lanes do not all run together."""
        by_stage: defaultdict[tuple[int, str], list[Equation]] = defaultdict(list)
        for e in self.program.equations:
            by_stage[self.stages[e], self.kinds[e]].append(e)
        for stage in sorted({stage for stage, _ in by_stage}):
            shared, lanes, meetings = (by_stage[stage, kind] for kind in (SHARED, LANES, MEETING))
            yield from self._shared(shared)
            computed = {v for e in lanes for v in e.outputs}
            ends = [
                e
                for e in meetings
                if fold_over(e, self.lanes.axis) and not computed.isdisjoint(e.inputs)
                if not self.lanes.isolated
            ]
            yield from self._segment([*lanes, *ends])
            yield from self._between_barriers([self._met(e) for e in meetings if e not in ends])

    def _segment(self, equations: Sequence[Equation]) -> Sequence[Equation]:
        """``equations`` as one operation, if a few lanes at a time are to run them."""
        inputs, outputs = self._ends(equations)
        program = Program(inputs, [*equations], outputs, self.program.name)
        size = self.lanes.size
        own = tuple([v in self.own for v in inputs])
        at_once = self.lanes.at_once(program, own, size) if equations else size
        if not equations or (at_once >= size and not self.lanes.isolated):
            return equations
        self.changed = True
        params = {"program": program, "of": self.lanes.axis, "at_once": at_once}
        results = tuple(outputs)
        return [Equation(segment, [*inputs], params, results, None)]

    def _ends(self, equations: Sequence[Equation]) -> tuple[list[Var], list[Var]]:
        """What ``equations`` take that others made, and what they make that others take."""
        inside = Counter([a for e in equations for a in e.inputs])
        results = {v: None for e in equations for v in e.outputs}
        outputs = [v for v in results if self.uses[v] > inside[v]]
        return [a for a in inside if isinstance(a, Var) and a not in results], outputs

    def _shared(self, equations: Sequence[Equation]) -> Iterator[Equation]:
        """``equations`` of what all lanes share, each run of them isolated, if lanes are."""
        if not self.lanes.isolated:
            yield from equations
            return
        self.changed = True
        for meet, some in groupby(equations, self.lanes.meet_in):
            if meet:
                yield from self._between_barriers([*some])
            else:
                yield self._isolated([*some])

    def _isolated(self, equations: Sequence[Equation]) -> Equation:
        inputs, outputs = self._ends(equations)
        program = Program(inputs, [*equations], outputs, self.program.name)
        return Equation(isolated, [*inputs], {"program": program}, tuple(outputs), None)

    def _between_barriers(self, equations: Sequence[Equation]) -> Sequence[Equation]:
        """``equations`` which others are not fused with, if lanes are isolated."""
        if not self.lanes.isolated or not equations:
            return equations
        self.changed = True
        inputs, outputs = self._ends(equations)
        names: dict[Atom, Var] = {v: Var(v.type) for v in (*inputs, *outputs)}
        inside = [
            e.update(
                inputs=[names.get(a, a) for a in e.inputs],
                outputs=tuple([names.get(v, v) for v in e.outputs]),
            )
            for e in equations
        ]
        before = _barrier(inputs, [names[v] for v in inputs])
        return [*before, *inside, *_barrier([names[v] for v in outputs], outputs)]

    def _met(self, e: Equation) -> Equation:
        """``e``, whose programs have schedules of their own."""
        frame = e.frame
        if frame is None:
            return e
        lanes = replace(self.lanes, over=self.lanes.over - frame.lanes)
        marks = varying_inside(e, frame, self.own)
        new_frame = frame.rewritten(lambda p: scheduled(p, lanes, marks))
        if new_frame == frame:
            return e
        self.changed = True
        return e.reframed(new_frame)


def _barrier(values: Sequence[Var], behind: Sequence[Var]) -> list[Equation]:
    if not values:
        return []
    return [Equation(optimization_barrier, [*values], {}, tuple(behind), None)]


def _bytes(atoms: Sequence[Atom]) -> int:
    return sum([size_in_bytes(a.type) for a in atoms])
