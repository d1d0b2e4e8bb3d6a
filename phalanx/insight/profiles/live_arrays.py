"""The arrays that live while a program runs: which lines made them, and which lines leak.

Python's own record of allocations tells where each array was made, so nothing is kept where this
is not asked for.
"""

# What holds the data of an array is private to users.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import tracemalloc
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from phalanx.api.live import live_arrays
from phalanx.base.source import is_internal
from phalanx.insight.reports.report import Chart, Column, Part, Table
from phalanx.run.array import DeviceArray
from phalanx.transforms.storage import size_in_bytes

__all__ = ["Living", "Census"]

_DEPTH = 16  # frames that are kept of each allocation
_EVERY = 0.25  # seconds
_SHARE = 10  # of the time, of which looking takes one part at most
_LEAST = 3  # times that a line's bytes must have grown to be said to leak


class Census(Struct, frozen=True):
    """The bytes and the numbers of live arrays, by the lines that made them, at a time."""

    at: float
    size: dict[str, float]
    count: dict[str, int]


class Living(Struct):
    """Samples, in order."""

    samples: list[Census] = field(default_factory=list[Census])

    @contextmanager
    def watching(self) -> Generator[None]:
        """Take samples while a block runs, and one at its end.

        A timer interrupts the main thread, since no other may look at all objects while that one
        makes some. Where it cannot, there is the one at the end.
        """
        alone = not tracemalloc.is_tracing()
        if alone:
            tracemalloc.start(_DEPTH)
        begun = time.perf_counter()

        def look(*_: object) -> None:
            start = time.thread_time()  # others may keep this thread waiting
            self.take(time.perf_counter() - begun)
            if timed:
                took = time.thread_time() - start
                signal.setitimer(signal.ITIMER_REAL, max(_EVERY, _SHARE * took))

        timed = _has_timer()
        if timed:
            signal.signal(signal.SIGALRM, look)
            signal.setitimer(signal.ITIMER_REAL, _EVERY)
        try:
            yield
        finally:
            if timed:
                timed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
            look()
            if alone:
                tracemalloc.stop()

    def take(self, at: float) -> None:
        """Look which arrays there are now."""
        size: dict[str, float] = {}
        count: dict[str, int] = {}
        for array in live_arrays():
            line = _creation_line(array)
            size[line] = size.get(line, 0.0) + size_in_bytes(array.aval)
            count[line] = count.get(line, 0) + 1
        self.samples.append(Census(at, size, count))

    @property
    def leaks(self) -> list[str]:
        """The lines whose arrays become ever more, until they are let go at an end, as of a
        function, if they are."""
        lines = dict.fromkeys([line for s in self.samples for line in s.size])
        return [line for line in lines if _grows([s.size.get(line, 0.0) for s in self.samples])]

    def parts(self) -> list[Part]:
        """What a report says of them."""
        if not self.samples:
            return []
        last, leaks = self.samples[-1], set(self.leaks)
        most = {
            line: max([s.size.get(line, 0.0) for s in self.samples])
            for line in dict.fromkeys([line for s in self.samples for line in s.size])
        }
        rows = [
            (line, last.count.get(line, 0), last.size.get(line, 0.0), size,
             "grows" if line in leaks else "")
            for line, size in sorted(most.items(), key=lambda item: -item[1])
        ]  # fmt: skip
        columns = (
            Column("made at", "line"), Column("arrays", "count"), Column("bytes", "bytes"),
            Column("at most", "bytes"), Column("leak"),
        )  # fmt: skip
        points = tuple([(s.at, sum(s.size.values())) for s in self.samples])
        note = "At the end, and the most of all samples. What grows from sample to sample may leak."
        return [
            Chart(
                "live arrays over time", Column("time", "seconds"), Column("alive", "bytes"),
                (("", points),),
            ),
            Table("live arrays by line", columns, tuple(rows), note),
        ]  # fmt: skip


def _grows(sizes: Sequence[float]) -> bool:
    """Whether what first was there, up to when it was most, became ever more, its start left out.

    A line may make what does not stay, too, so there is now and again less: but never as little as
    a third of the time before.
    """
    first = next(i for i, size in enumerate(sizes) if size)
    last = len(sizes) - 1 - sizes[::-1].index(max(sizes))
    late = sizes[first + (last + 1 - first) // 3 : last + 1]
    rises = sum([after > before for before, after in itertools.pairwise(late)])
    if rises < _LEAST:
        return False
    one, two = len(late) // 3, 2 * len(late) // 3
    return min(late[:one]) < min(late[one:two]) < min(late[two:])


def _has_timer() -> bool:
    """Whether this thread can be interrupted by a timer that nobody else uses."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    )


def _creation_line(array: DeviceArray) -> str:
    """The user's line that made an array, or, in Python 3.11, its data: there the record of what
    has a ``__dict__`` is not found."""
    traces = map(tracemalloc.get_object_traceback, (array, array._raw))
    trace = next(filter(None, traces), None)
    for frame in reversed(trace or ()):  # the innermost is the last
        if not is_internal(frame.filename):
            return f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return "before"
