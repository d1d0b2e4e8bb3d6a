"""Loops: calls of the host in each iteration, and loops of Python that were written out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from phalanx.base.source import Location
from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.core.roles import CHOICE
from phalanx.core.runs import Loop
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import Subject

__all__ = ["P114", "host_calls_in_loops", "loops_written_out"]

P113 = Code(
    "P113",
    "a host callback in every iteration of a loop",
    'lax.scan(lambda c, x: (debug.print("{}", c), (c + x, c))[1], 0.0, xs)',
    "Return the values as rows of the scan and print them afterwards, or call the host in some "
    "iterations only, under lax.cond.",
)
P114 = Code(
    "P114",
    "a Python loop that was unrolled into thousands of operations",
    "for _ in range(1000): x = step(x)",
    "Use lax.scan or lax.fori_loop, which compile the body once, or vmap for independent "
    "iterations.",
)

FEW_RUNS = 8  # of which a host may be told each
MANY_TIMES, MANY_OPERATIONS = 200, 1000


def host_calls_in_loops(subject: Subject) -> Iterator[Finding]:
    """Calls of Python, or of functions with effects, that a loop makes again and again."""
    if any(p.effects.called is not None for p in subject.primitives):
        yield from _calls(subject, subject.program, None)


def _calls(subject: Subject, program: Program, loop: Loop | None) -> Iterator[Finding]:
    for e in program.equations:
        if loop is not None and e.prim.effects.called is not None:
            name = e.prim.effects.called(**e.params)
            times = "an unknown number of" if loop.length is None else loop.length
            yield P113.at(
                e.location or subject.place,
                f"{name} is called in every iteration of a loop, {times} times: the device waits "
                "for the host each time",
            )
        frame = e.frame if e.prim.subprograms is not None else None
        if frame is None:
            continue
        inside = None if CHOICE in frame.ins else loop
        if isinstance(frame.runs, Loop) and not _is_short(frame.runs):
            inside = frame.runs
        for p in frame.subprograms:
            yield from _calls(subject, p, inside)


def _is_short(loop: Loop) -> bool:
    return loop.length is not None and loop.length <= FEW_RUNS


# ---- loops of Python ----------------------------------------------------------------------------

Spot = tuple[Any, int]  # in the user's code


def loops_written_out(subject: Subject) -> Iterator[Finding]:
    """Lines of the user's that were traced hundreds of times, each after the one before."""
    for program in subject.programs:
        if len(program.equations) >= MANY_OPERATIONS:
            yield from _written_out(subject, program)


def _written_out(subject: Subject, program: Program) -> Iterator[Finding]:
    places = {id(e.location): e.location for e in program.equations}  # each time a line ran
    times = Counter([place.spot for place in places.values() if place is not None])
    often = {spot for spot, n in times.items() if n >= MANY_TIMES}
    chains = {s: n for s, n in _chains(program, often).items() if n >= MANY_TIMES}
    rows = {s: n for s, n in _rows(program, often).items() if n >= MANY_TIMES}
    found = chains or rows
    if not found:
        return
    inside = [e for e in program.equations if _spot(e) in often]
    if len(inside) < MANY_OPERATIONS:
        return
    spot = max(found, key=lambda s: found[s])
    place: Location = next(e.location for e in inside if _spot(e) == spot and e.location)
    yield P114.at(
        place,
        f"this line was traced {found[spot]} times, and the loop around it was unrolled into "
        f"{len(inside)} operations: tracing and compiling take correspondingly long",
    )


def _spot(e: Equation) -> Spot | None:
    return None if e.location is None else e.location.spot


def _chains(program: Program, often: set[Spot]) -> dict[Spot, int]:
    """How many times each spot comes one after the other, each depending on the one before."""
    longest: dict[Spot, int] = {}
    for spot in often:
        places: dict[Atom, tuple[int, int]] = {}  # how many so far, and the last one
        for e in program.equations:
            before = max((places[a] for a in e.inputs if a in places), default=(0, 0))
            if _spot(e) == spot and before[1] != id(e.location):
                before = before[0] + 1, id(e.location)
            if before[0]:
                places.update(dict.fromkeys(e.outputs, before))
                longest[spot] = max(longest.get(spot, 0), before[0])
    return longest


def _rows(program: Program, often: set[Spot]) -> dict[Spot, int]:
    """How many rows of the same array each spot takes out by number."""
    counts: Counter[tuple[Spot, Atom]] = Counter()
    for e in program.equations:
        spot = _spot(e)
        if spot in often and e.prim.elements.copied and type(e.inputs[0]) is Var:
            whole, part = e.inputs[0].type.size, e.outputs[0].type.size
            if part < whole and all(type(a) is Literal for a in e.inputs[1:]):
                counts[spot, e.inputs[0]] += 1
    found: dict[Spot, int] = {}
    for (spot, _), n in counts.items():
        found[spot] = max(found.get(spot, 0), n)
    return found
