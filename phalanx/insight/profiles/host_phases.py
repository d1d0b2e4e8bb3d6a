"""What the host does while a program is profiled: importing, tracing, compiling, moving arrays,
launching programs, waiting for them; and Python, which is all else.

The phases are events in the record of the runtime, so that they have its clock.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from phalanx import profiler
from phalanx.base.phases import recorders
from phalanx.insight.reports.report import Column, Table
from phalanx.insight.reports.values import shown

__all__ = ["Phase", "host_table", "phases_in", "recording_phases", "spent", "why_idle"]

_MARK = "phalanx: "
_WHOLE = "recording"
_PYTHON = "Python"
_ONCE = ("importing", "tracing", "lowering", "compiling", "loading from the cache")
# What the runtime records by itself, by a part of its name.
_EVENTS = {
    "DevicePut": "moving arrays to devices",
    "BufferFromHost": "moving arrays to devices",
    "Executable::Execute": "launching programs",
}


class Phase(Struct, frozen=True):
    """What the host does for some time, in seconds, and in nothing inside of it."""

    name: str
    start: float
    stop: float


def _marked(name: str) -> Any:
    return profiler.TraceAnnotation(_MARK + name)


@contextmanager
def recording_phases() -> Generator[None]:
    """Have the runtime record the phases of this thread, and its imports."""
    plainly = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name in sys.modules:
            return plainly(name, *args, **kwargs)
        with _marked("importing"):
            return plainly(name, *args, **kwargs)

    recorders.append(_marked)
    builtins.__import__ = importing
    try:
        with _marked(_WHOLE):
            yield
    finally:
        builtins.__import__ = plainly
        recorders.remove(_marked)


def phases_in(planes: Iterable[Any]) -> list[Phase]:
    """The phases in what the runtime recorded, one after the other; Python is first where nothing
    else is."""
    for plane in planes:
        for line in plane.lines:
            events = [e for e in map(_phase, line.events) if e is not None]
            if any(e.name == _PYTHON for e in events):
                return list(_innermost(sorted(events, key=lambda e: (e.start, -e.stop))))
    return []


def _phase(event: Any) -> Phase | None:
    name = event.name
    start = event.start_ns / 1e9
    if name.startswith(_MARK):
        name = name.removeprefix(_MARK)
        return Phase(_PYTHON if name == _WHOLE else name, start, start + event.duration_ns / 1e9)
    label = next((label for part, label in _EVENTS.items() if part in name), None)
    return Phase(label, start, start + event.duration_ns / 1e9) if label else None


def _innermost(phases: Sequence[Phase]) -> Iterator[Phase]:
    """Pieces that do not overlap, each of the phase that began last."""
    open_phases: list[Phase] = []
    at = phases[0].start

    def until(time: float) -> Iterator[Phase]:
        nonlocal at
        while open_phases and open_phases[-1].stop <= time:
            inner = open_phases.pop()
            if inner.stop > at:
                yield Phase(inner.name, at, inner.stop)
                at = inner.stop
        if open_phases and time > at:
            yield Phase(open_phases[-1].name, at, time)
        at = max(at, time)

    for phase in phases:
        yield from until(phase.start)
        open_phases.append(phase)
    yield from until(max([p.stop for p in phases]))


def spent(phases: Iterable[Phase]) -> dict[str, float]:
    """Seconds by the name of the phase, the most first."""
    found: dict[str, float] = {}
    for phase in phases:
        found[phase.name] = found.get(phase.name, 0.0) + phase.stop - phase.start
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def host_table(phases: Sequence[Phase]) -> Table:
    """How long the host was in each phase."""
    seconds = spent(phases)
    total = sum(seconds.values()) or 1.0
    rows = [(name, time, time / total) for name, time in seconds.items()]
    note = "Time of the profiled thread. Python is your own code, including reading input."
    return Table(
        "host", (Column("phase"), Column("time", "seconds"), Column("share", "share")),
        tuple(rows), note,
    )  # fmt: skip


def why_idle(seconds: Mapping[str, float]) -> str:
    """What the host did while devices had nothing to do, and what helps; "" if nobody knows."""
    total = sum(seconds.values())
    if not total:
        return ""
    first = [f"{name} ({shown(s / total, 'share')})" for name, s in [*seconds.items()][:2]]
    once = sum([seconds.get(name, 0.0) for name in _ONCE])
    advice = ""
    if once > total / 2:
        advice = " Most of that happens once: profile more steps."
    elif next(iter(seconds)) == "moving arrays to devices":
        advice = " Move the next batch while the devices compute this one."
    elif next(iter(seconds)) == _PYTHON:
        advice = " Prepare input in other threads, or do more in each call."
    return f"The host was busy with {' and '.join(first)}.{advice}"
