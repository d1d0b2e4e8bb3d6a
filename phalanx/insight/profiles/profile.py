"""Profiles: how long what a program runs took, by the user's line and by device, as measured.

The runtime records when each instruction of a compiled program begins and ends, by its name; which
line that comes from, the text of the program tells.
"""

from __future__ import annotations

import gc
import itertools
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from typing import Any

from msgspec import Struct, field, structs

from phalanx import profiler
from phalanx.api.stages import Traced, watching
from phalanx.base.boundary import boundary
from phalanx.base.errors import PhalanxError, RuntimeFailure
from phalanx.base.source import lines_of_users
from phalanx.insight.profiles.host_phases import (
    Phase,
    host_table,
    phases_in,
    recording_phases,
    spent,
    why_idle,
)
from phalanx.insight.profiles.live_arrays import Living
from phalanx.insight.reports.report import Column, Facts, Part, Report, Table, Timeline
from phalanx.insight.reports.values import short_line, shown, source_of
from phalanx.primitives.conv import conv_general_dilated
from phalanx.run.backend import Kernel
from phalanx.run.calls import calls
from phalanx.run.runnable import Runnable

__all__ = ["Profile", "Span", "profiling"]

_SPANS = 400  # of a device in the timeline; what is close together is one
_GAPS, _NAMED = 20, 3  # gaps that are listed, and instructions of a line
_NO_LINE = "no line"
_EXCHANGES = ("all-", "reduce-scatter", "collective-", "ragged-")


class Span(Struct, frozen=True):
    """An instruction that ran on a device, and when, in seconds."""

    device: str
    module: str
    name: str
    start: float
    stop: float


class Profile(Struct):
    """What was recorded.

    Attributes:
        spans: what ran, by the time at which it began.
        kernels: what the instructions of each program are.
        seconds: how long was recorded.
        phases: what the host did, in order.
        living: the arrays that were there, if they were watched.
    """

    spans: list[Span] = field(default_factory=list[Span])
    kernels: dict[tuple[str, str], Kernel] = field(default_factory=dict[tuple[str, str], Kernel])
    seconds: float = 0.0
    phases: list[Phase] = field(default_factory=list[Phase])
    living: Living | None = None

    def report(self, title: str = "profile") -> Report:
        """What took how long."""
        busy, lines = self._busy(), self._lines()
        host = host_table(self.phases)
        parts: list[Part] = [
            self._summary(busy), *([host] if self.phases else []), lines, self._devices(),
            self._exchanges(), self._timeline(), self._gaps(),
        ]  # fmt: skip
        if self.living is not None:
            parts += self.living.parts()
        slowest = (lines.rows[0][0], lines.rows[0][2]) if lines.rows else None
        verdict = _verdict(self.seconds, busy, slowest, why_idle(spent(self.phases)))
        return Report(title, tuple(parts), verdict)

    # ---- parts ----

    def _kernel(self, span: Span) -> Kernel:
        unknown = Kernel(span.name, span.name, 1, 1, "")
        return self.kernels.get((span.module, span.name), unknown)

    def _busy(self) -> float:
        """The share of the time in which devices were busy."""
        by_device = self._by_device()
        time = self.seconds * len(by_device)
        return sum(map(_busy, by_device.values())) / time if time else 0.0

    def _summary(self, busy: float) -> Facts:
        return Facts(
            "summary",
            (
                ("recorded", self.seconds, "seconds"),
                ("devices", len(self._by_device()), "count"),
                ("busy", busy, "share"),
                ("programs", len({s.module for s in self.spans}), "count"),
                ("instructions", len(self.spans), "count"),
            ),
        )

    def _by_device(self) -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {}
        for span in self.spans:
            found.setdefault(span.device, []).append(span)
        return dict(sorted(found.items()))

    def _lines(self) -> Table:
        runs = Counter[str]()
        seconds: dict[str, float] = {}
        instructions: dict[str, dict[str, float]] = {}
        for span in self.spans:
            kernel = self._kernel(span)
            line, took = kernel.line or _NO_LINE, span.stop - span.start
            runs[line] += 1
            seconds[line] = seconds.get(line, 0.0) + took
            by_kind = instructions.setdefault(line, {})
            by_kind[kernel.operation] = by_kind.get(kernel.operation, 0.0) + took
        total = sum(seconds.values()) or 1.0
        columns = (
            Column("line", "line"), Column("time", "seconds"), Column("share", "share"),
            Column("runs", "count"), Column("instructions"), Column("source", "code"),
        )  # fmt: skip
        return Table(
            "slowest lines", columns,
            tuple([
                (line, time, time / total, runs[line], _few(instructions[line]), source_of(line))
                for line, time in _most(seconds)
            ]),
            "Time of all devices. A fusion counts for one of its lines. The compiler keeps no line "
            "of copies and transposes that it has added, and operations outside of compiled "
            "functions have none.",
        )  # fmt: skip

    def _devices(self) -> Table:
        columns = (
            Column("device"), Column("busy", "seconds"), Column("share", "share"),
            Column("idle", "seconds"), Column("communicating", "seconds"),
        )  # fmt: skip
        rows: list[tuple[Any, ...]] = []
        for device, own in self._by_device().items():
            busy = _busy(own)
            whole = max(s.stop for s in own) - min(s.start for s in own)
            talking = sum([s.stop - s.start for s in own if _exchanges(self._kernel(s))])
            rows.append((device, busy, busy / (whole or 1.0), whole - busy, talking))
        note = (
            "From the first instruction of each to its last. Communicating includes waiting for "
            "the other devices."
        )
        return Table("devices", columns, tuple(rows), note)

    def _exchanges(self) -> Table:
        rows: dict[tuple[str, str], list[float]] = {}
        for span in self.spans:
            kernel = self._kernel(span)
            if _exchanges(kernel):
                times = rows.setdefault((kernel.operation, _line(kernel)), [])
                times.append(span.stop - span.start)
        columns = (
            Column("operation"), Column("line", "line"), Column("runs", "count"),
            Column("time", "seconds"), Column("longest", "seconds"), Column("shortest", "seconds"),
        )  # fmt: skip
        table_rows = [(*k, len(t), sum(t), max(t), min(t)) for k, t in rows.items()]
        table_rows.sort(key=lambda row: -row[3])
        note = "Runs on all devices. The difference between longest and shortest is waiting."
        return Table("collectives", columns, tuple(table_rows), note)

    def _timeline(self) -> Timeline:
        spans = {
            device: [(s.start, s.stop, *self._label(s)) for s in own]
            for device, own in self._by_device().items()
        }
        every = {"host": [(p.start, p.stop, "", p.name) for p in self.phases], **spans}
        every = {name: own for name, own in every.items() if own}
        start = min([own[0][0] for own in every.values()], default=0.0)
        close = (max([own[-1][1] for own in every.values()], default=0.0) - start) / _SPANS
        rows = [(name, tuple(_joined(own, start, close))) for name, own in every.items()]
        return Timeline("timeline", tuple(rows))

    def _label(self, span: Span) -> tuple[str, str]:
        """What a span of a device is, and of which kind."""
        kernel = self._kernel(span)
        kind = "communicating" if _exchanges(kernel) else "computing"
        return f"{kernel.operation}, {short_line(_line(kernel))}", kind

    def _gaps(self) -> Table:
        found: list[tuple[str, float, float, str, str]] = []
        for device, own in self._by_device().items():
            start, end, before = own[0].start, own[0].stop, own[0]
            for span in own[1:]:
                if span.start > end:
                    sides = _line(self._kernel(before)), _line(self._kernel(span))
                    found.append((device, end - start, span.start - end, *sides))
                if span.stop >= end:
                    end, before = span.stop, span
        found.sort(key=lambda row: -row[2])
        columns = (
            Column("device"), Column("at", "seconds"), Column("gap", "seconds"),
            Column("after", "line"), Column("before", "line"),
        )  # fmt: skip
        note = "In a gap the device is idle: it waits for the host or for other devices."
        return Table("the longest gaps", columns, tuple(found[:_GAPS]), note)


def _verdict(seconds: float, busy: float, slowest: tuple[str, float] | None, idle: str) -> str:
    """How busy devices were, why they were not, and which line took longest."""
    if slowest is None:
        return " ".join(
            filter(None, ["No device computed anything while this was recorded.", idle])
        )
    line, share = slowest
    text = f"Devices were busy {shown(busy, 'share')} of {shown(seconds, 'seconds')}."
    if busy < 0.5 and idle:
        text += f" {idle}"
    line = "What has no line" if line == _NO_LINE else short_line(line)
    return f"{text} {line} took {shown(share, 'share')} of the time of devices."


def _most(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    """What took longest first."""
    return sorted(seconds.items(), key=lambda item: -item[1])


def _few(instructions: Mapping[str, float]) -> str:
    """The instructions that took longest."""
    first = [name for name, _ in _most(instructions)[:_NAMED]]
    return ", ".join([*first, *(["..."] if len(instructions) > _NAMED else [])])


def _exchanges(kernel: Kernel) -> bool:
    return kernel.operation.startswith(_EXCHANGES)


def _line(kernel: Kernel) -> str:
    return kernel.line or kernel.name


def _busy(spans: Iterable[Span]) -> float:
    """The time in which at least one of ``spans``, by the time at which they began, runs."""
    busy, end = 0.0, float("-inf")
    for span in spans:
        busy += max(0.0, span.stop - max(span.start, end))
        end = max(end, span.stop)
    return busy


Drawn = tuple[float, float, str, str]  # from, to, what, of which kind


def _joined(spans: Sequence[Drawn], zero: float, close: float) -> Iterator[Drawn]:
    """``spans`` from ``zero`` on, of which those that are ``close`` together are one: what took
    longest in them says what they are."""
    begin, end, longest = spans[0][0], spans[0][1], spans[0]
    for span in spans[1:]:
        start, stop, *_ = span
        near = start - end < close and (span[3] == longest[3] or stop - start < close)
        if not near:
            yield begin - zero, end - zero, *longest[2:]
            begin, end, longest = start, stop, span
            continue
        end = max(end, stop)
        if stop - start > longest[1] - longest[0]:
            longest = span
    yield begin - zero, end - zero, *longest[2:]


# ---- recording ----------------------------------------------------------------------------------


@boundary
@contextmanager
def profiling(arrays: bool = False) -> Generator[Profile]:
    """Record what a block runs; the profile that it is given is complete when it has ended.

    Args:
        arrays: whether to watch the arrays that there are, too, which makes Python slower.

    Returns:
        The block, which gives a ``Profile``; its method ``report`` makes a ``Report`` of it.

    Raises:
        RuntimeFailure: something else is being recorded.

    >>> import phalanx, phalanx.numpy as jnp
    >>> with phalanx.insight.profiling() as profile:
    ...     _ = phalanx.jit(lambda x: x @ x)(jnp.ones((64, 64))).block_until_ready()
    >>> profile.report().title
    'profile'
    """
    found, seen = Profile(), list[Traced]()
    found.living = Living() if arrays else None
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            profiler.start_trace(folder, profiler_options=options)
        except RuntimeFailure:
            raise RuntimeFailure(
                "profiling: something records already: `phalanx profile`, another profiling() or "
                "start_trace(). One can do so at a time: run this script without `phalanx "
                "profile`, or leave this block out, for what it runs is recorded in any case"
            ) from None
        begun = time.perf_counter()
        living = found.living.watching() if found.living is not None else nullcontext()
        try:
            with watching(seen.append), lines_of_users(), living, recording_phases():
                yield found
        finally:
            found.seconds = time.perf_counter() - begun
            recorded = profiler.stop_trace()
    found.spans = sorted(_spans(recorded), key=lambda s: s.start)
    found.phases = phases_in(recorded.planes)
    found.kernels.update(_compiled_before({s.module for s in found.spans}))
    for traced in seen:
        found.kernels.update(_named(traced))


def _compiled_before(modules: Set[str]) -> Iterator[tuple[tuple[str, str], Kernel]]:
    """What the instructions of ``modules`` are, as far as what was compiled is still there.

    Operations outside of compiled functions are programs that all lines share.
    """
    shared = {id(calls[key].prepared) for key in list(calls)}
    for x in gc.get_objects():
        if type(x) is Runnable and id(x) not in shared and re.sub(r"\W", "_", x.name) in modules:
            yield from [((k.module, k.name), k) for k in x.executable.kernels()]


def _named(traced: Traced) -> dict[tuple[str, str], Kernel]:
    """What the instructions of a program are, by its name and theirs."""
    try:
        executable = traced.lower().compile().runtime_executable()
        kernels = map(_with_line, executable.kernels(), itertools.repeat(_convolved(traced)))
        return {(k.module, k.name): k for k in kernels}
    except (PhalanxError, NotImplementedError, AttributeError):  # it maps rows of processes
        return {}


def _convolved(traced: Traced) -> str:
    """The line of all convolutions of a program; "" where there are several."""
    places = {e.location for e in traced.program.walk() if e.prim is conv_general_dilated}
    lines = {f"{p.full} ({p.function})" for p in places if p is not None}
    return lines.pop() if len(lines) == 1 else ""


def _with_line(kernel: Kernel, convolved: str) -> Kernel:
    """``kernel``; the compiler for CPUs forgets the lines of convolutions."""
    forgotten = not kernel.line and kernel.operation == "convolution"
    return structs.replace(kernel, line=convolved) if forgotten else kernel


def _spans(recorded: Any) -> Iterator[Span]:
    """The instructions in what the runtime recorded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the bindings, about themselves
        for plane in recorded.planes:
            for line in plane.lines:
                for event in line.events:
                    stats = dict(event.stats)
                    if "hlo_op" not in stats:
                        continue
                    device = plane.name.removeprefix("/device:")
                    if "device_ordinal" in stats:
                        device = f"cpu {stats['device_ordinal']}"
                    start = event.start_ns / 1e9
                    yield Span(
                        device, str(stats.get("hlo_module", "")), str(stats["hlo_op"]), start,
                        start + event.duration_ns / 1e9,
                    )  # fmt: skip
