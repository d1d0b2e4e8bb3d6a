"""Profiles: how long what a program runs took, by the user's line and by device, as measured.

The runtime records when each instruction of a compiled program begins and ends, by its name; which
line that comes from, the text of the program tells.
"""

from __future__ import annotations

import gc
import re
import tempfile
import time
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext
from typing import Any

from msgspec import Struct, field

from phalanx import profiler
from phalanx.api.stages import Traced, watching
from phalanx.base.boundary import boundary
from phalanx.base.errors import PhalanxError, RuntimeFailure
from phalanx.base.source import lines_of_users
from phalanx.insight.living import Living
from phalanx.insight.report import Column, Facts, Part, Report, Table, Timeline, short_line, shown
from phalanx.run.backend import Kernel
from phalanx.run.calls import calls
from phalanx.run.runnable import Runnable

__all__ = ["Profile", "Span", "profiling"]

_SPANS = 400  # of a device in the timeline; what is close together is one
_GAPS = 20
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
        living: the arrays that were there, if they were watched.
    """

    spans: list[Span] = field(default_factory=list[Span])
    kernels: dict[tuple[str, str], Kernel] = field(default_factory=dict[tuple[str, str], Kernel])
    seconds: float = 0.0
    living: Living | None = None

    def report(self, title: str = "profile") -> Report:
        """What took how long."""
        busy, lines = self._busy(), self._lines()
        parts: list[Part] = [
            self._in_all(busy), lines, self._devices(), self._exchanges(), self._timeline(),
            self._gaps(),
        ]  # fmt: skip
        if self.living is not None:
            parts += self.living.parts()
        slowest = (lines.rows[0][0], lines.rows[0][2]) if lines.rows else None
        return Report(title, tuple(parts), _verdict(self.seconds, busy, slowest))

    # ---- parts ----

    def _kernel(self, span: Span) -> Kernel:
        unknown = Kernel(span.name, span.name, 1, 1, "")
        return self.kernels.get((span.module, span.name), unknown)

    def _busy(self) -> float:
        """The share of the time in which devices were busy."""
        by_device = self._by_device()
        time = self.seconds * len(by_device)
        return sum(map(_busy, by_device.values())) / time if time else 0.0

    def _in_all(self, busy: float) -> Facts:
        devices = len(self._by_device())
        return Facts(
            "in all",
            (
                ("recorded", self.seconds, "seconds"),
                ("devices that ran something", devices, "count"),
                ("they were busy", busy, "share"),
                ("programs", len({s.module for s in self.spans}), "count"),
                ("instructions that ran", len(self.spans), "count"),
            ),
        )

    def _by_device(self) -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {}
        for span in self.spans:
            found.setdefault(span.device, []).append(span)
        return dict(sorted(found.items()))

    def _lines(self) -> Table:
        rows: dict[tuple[str, str], list[float]] = {}
        for span in self.spans:
            kernel = self._kernel(span)
            row = rows.setdefault((_line(kernel), kernel.operation), [0.0, 0.0])
            row[0] += 1
            row[1] += span.stop - span.start
        total = sum([row[1] for row in rows.values()]) or 1.0
        columns = (
            Column("line", "line"), Column("time", "seconds"), Column("share", "share"),
            Column("instruction"), Column("runs", "count"),
        )  # fmt: skip
        ordered = sorted(rows.items(), key=lambda item: -item[1][1])
        return Table(
            "lines, the slowest first", columns,
            tuple([
                (line, time, time / total, instruction, runs)
                for (line, instruction), (runs, time) in ordered
            ]),
            "The time of all devices. What the compiler fused is told by one of its lines.",
        )  # fmt: skip

    def _devices(self) -> Table:
        columns = (
            Column("device"), Column("busy", "seconds"), Column("share", "share"),
            Column("gaps", "seconds"), Column("exchanging", "seconds"),
        )  # fmt: skip
        rows: list[tuple[Any, ...]] = []
        for device, own in self._by_device().items():
            busy = _busy(own)
            whole = max(s.stop for s in own) - min(s.start for s in own)
            talking = sum([s.stop - s.start for s in own if _exchanges(self._kernel(s))])
            rows.append((device, busy, busy / (whole or 1.0), whole - busy, talking))
        note = "From the first instruction of each to its last. Exchanging is waiting, too."
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
            Column("time", "seconds"), Column("the longest", "seconds"),
            Column("the shortest", "seconds"),
        )  # fmt: skip
        made = [(*k, len(t), sum(t), max(t), min(t)) for k, t in rows.items()]
        made.sort(key=lambda row: -row[3])
        note = "Runs of all devices. What the longest take beyond the shortest is waiting."
        return Table("collectives", columns, tuple(made), note)

    def _timeline(self) -> Timeline:
        start = min([s.start for s in self.spans], default=0.0)
        rows = [
            (device, tuple(_joined(own, start, self.kernels)))
            for device, own in self._by_device().items()
        ]
        return Timeline("timeline", tuple(rows))

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
        note = "A device without work waits for the host, or for data."
        return Table("the longest gaps", columns, tuple(found[:_GAPS]), note)


def _verdict(seconds: float, busy: float, slowest: tuple[str, float] | None) -> str:
    """How busy devices were, and with which line most."""
    if slowest is None:
        return "No device computed anything while this was recorded."
    line, share = slowest
    told = f"Devices were busy {shown(busy, 'share')} of {shown(seconds, 'seconds')}"
    if busy < 0.5:
        told += "; they waited for Python, compiling, input or each other in the rest"
    return f"{told}. {line} takes most of what they computed: {shown(share, 'share')}."


def _exchanges(kernel: Kernel) -> bool:
    return kernel.operation.startswith(_EXCHANGES)


def _line(kernel: Kernel) -> str:
    return short_line(kernel.line) or kernel.name


def _busy(spans: Iterable[Span]) -> float:
    """The time in which at least one of ``spans``, by the time at which they began, runs."""
    busy, end = 0.0, float("-inf")
    for span in spans:
        busy += max(0.0, span.stop - max(span.start, end))
        end = max(end, span.stop)
    return busy


def _joined(
    spans: list[Span], zero: float, kernels: Mapping[tuple[str, str], Kernel]
) -> Iterator[tuple[float, float, str]]:
    """``spans`` from ``zero`` on, of which those that are close together are one."""
    close = (spans[-1].stop - spans[0].start) / _SPANS
    start, stop, longest = spans[0].start, spans[0].stop, spans[0]
    for span in [*spans[1:], None]:
        if span is not None and span.start - stop < close:
            stop = max(stop, span.stop)
            if span.stop - span.start > longest.stop - longest.start:
                longest = span
            continue
        kernel = kernels.get((longest.module, longest.name))
        told = f"{kernel.operation}, {_line(kernel)}" if kernel is not None else longest.name
        yield start - zero, stop - zero, told
        if span is not None:
            start, stop, longest = span.start, span.stop, span


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
            with watching(seen.append), lines_of_users(), living:
                yield found
        finally:
            found.seconds = time.perf_counter() - begun
            recorded = profiler.stop_trace()
    found.spans = sorted(_spans(recorded), key=lambda s: s.start)
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
        return {(k.module, k.name): k for k in executable.kernels()}
    except (PhalanxError, NotImplementedError, AttributeError):  # it maps rows of processes
        return {}


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
