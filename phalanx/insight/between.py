"""What happens between compiled functions, in loops of Python: keys that are used again and again,
and operations that are run one by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import numpy as np
from msgspec import Struct, field

from phalanx.api.stages import watching
from phalanx.base.extended import is_key
from phalanx.base.source import Location, user_frame
from phalanx.core.program import Program
from phalanx.core.types import typeof
from phalanx.insight.findings import Finding
from phalanx.insight.keys import P106, keys_drawn
from phalanx.insight.loops import P114
from phalanx.run.array import words_of
from phalanx.run.calls import on_called

__all__ = ["Between", "watching_between"]

MANY_TIMES, MANY_OPERATIONS, MANY_PER_CALL = 500, 3000, 3
LARGEST = 4096  # elements of what keys are made of, that is looked at
KEPT = 10_000  # keys of a line

Spot = tuple[CodeType, int]


class Drawing(Struct):
    """A line of the user's while its function runs: what it has drawn numbers with so far."""

    frame: FrameType
    drawn: dict[Any, Sequence[int]] = field(default_factory=dict)


class Between:
    """What a program does outside of compiled functions.

    Attributes:
        findings: keys that were used again.
    """

    def __init__(self) -> None:
        self.findings: dict[Finding, None] = {}
        self._lines: dict[Spot, Drawing] = {}  # as their functions ran last
        self._operations: Counter[Spot] = Counter()
        self._calls: Counter[CodeType] = Counter()

    def called(self, program: Program, values: Sequence[Any], is_of_user: bool) -> None:
        """A call of a compiled function, or an operation that is run on its own.

        A function with the same keys, and nothing else than before, is called again on purpose, as
        to measure its time.
        """
        frame = user_frame()
        given = [*map(id, values)] if is_of_user else []
        if is_of_user:
            self._calls[frame.f_code] += 1
        else:
            self._operations[frame.f_code, frame.f_lasti] += 1
        for key in _keys(program, values):
            before = self._before(frame, (id(program), key) if is_of_user else key, given)
            if before is not None and (before != given or not is_of_user):
                self._report(frame)

    def _before(self, frame: FrameType, key: Any, given: Sequence[int]) -> Sequence[int] | None:
        """What was ``given`` when the line that runs in ``frame`` first came with ``key``."""
        spot = frame.f_code, frame.f_lasti
        line = self._lines.get(spot)
        if line is None or line.frame is not frame or len(line.drawn) >= KEPT:
            line = self._lines[spot] = Drawing(frame)
        before = line.drawn.get(key)
        if before is None:
            line.drawn[key] = given
        return before

    def _report(self, frame: FrameType) -> None:
        place = Location(frame.f_code, frame.f_lasti)
        said = (
            "a loop of Python comes here with the same key again: its random numbers are the same"
        )
        self.findings[P106.at(place, f"{said} each time")] = None

    # ---- operations one by one ----

    def loops(self) -> Iterator[Finding]:
        """Functions of which loops ran thousands of operations, each on its own."""
        by_code: dict[CodeType, Counter[int]] = defaultdict(Counter)
        for (code, lasti), times in self._operations.items():
            if times >= MANY_TIMES:
                by_code[code][lasti] += times
        for code, spots in by_code.items():
            count = spots.total()
            if count >= max(MANY_OPERATIONS, MANY_PER_CALL * self._calls[code]):
                ((lasti, times),) = spots.most_common(1)
                yield P114.at(
                    Location(code, lasti),
                    f"loops of Python ran {count:,} operations here one by one, {times:,} of them "
                    "in this line: each takes as long as the call of a compiled function",
                    "Compile what is in the loop, jit, or the whole of it with lax.scan or "
                    "lax.fori_loop; for independent iterations vmap.",
                )


def _keys(program: Program, values: Sequence[Any]) -> Iterator[Any]:
    """The keys with which ``program`` of ``values`` draws numbers: what these are made of."""
    for n, made_of in enumerate(keys_drawn(program)):
        held = [_held(values[i]) for i in sorted(made_of)]
        if held and None not in held:
            yield n, *held


def _held(x: Any) -> bytes | None:
    """The elements of ``x``, if they are few."""
    if typeof(x).size > LARGEST:
        return None
    return np.asarray(words_of(x) if is_key(typeof(x).dtype) else x).tobytes()


@contextmanager
def watching_between() -> Generator[Between]:
    """Watch what happens outside of compiled functions, inside a block."""
    between = Between()
    with watching(between.called, on_called):
        yield between
