"""What happens between compiled functions, in loops of Python: keys that are used again and again,
and operations that are run one by one.
"""

from __future__ import annotations

import sysconfig
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import numpy as np
from msgspec import Struct, field

from phalanx.api.stages import watching
from phalanx.base import dtypes
from phalanx.base.extended import is_key
from phalanx.base.source import Location, user_frame
from phalanx.core.program import Program
from phalanx.core.runs import Lanes
from phalanx.core.types import typeof
from phalanx.insight.findings import Finding
from phalanx.insight.keys import P106, keys_drawn
from phalanx.insight.loops import P114
from phalanx.run.array import words_of
from phalanx.run.calls import on_called

__all__ = ["Between", "watching_between"]

MANY_TIMES, MANY_OPERATIONS, MANY_PER_CALL = 500, 3000, 3
LARGEST = 4096  # elements of what keys are made of, that is looked at
KEPT = 10_000  # keys of a function
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
_AGAIN = "a loop of Python comes here with the same key again"
_SECOND = "the key is used here for the second time, after"

Spot = tuple[CodeType, int]


class Drawing(Struct):
    """With what a function of the user's has drawn numbers so far, while it runs: where, and what
    was given there."""

    frame: FrameType
    drawn: dict[Any, tuple[int, Sequence[int]]] = field(
        default_factory=dict[Any, tuple[int, Sequence[int]]]
    )


class Between:
    """What a program does outside of compiled functions.

    Attributes:
        findings: keys that were used again.
    """

    def __init__(self) -> None:
        self.findings: dict[Finding, None] = {}
        self._drawings: dict[CodeType, Drawing] = {}
        self._operations: Counter[Spot] = Counter()
        self._calls: Counter[CodeType] = Counter()

    def called(self, program: Program, values: Sequence[Any], is_of_user: bool) -> None:
        """A call of a compiled function, or an operation that is run on its own."""
        frame = user_frame()
        if is_of_user:
            self._calls[frame.f_code] += 1
        else:
            self._operations[frame.f_code, frame.f_lasti] += 1
        for key in _keys(program, values):
            if not is_of_user:
                self._drawn_with(frame, key)
            elif not _estimates(program):
                self._called_with(frame, (frame.f_lasti, id(program), key), [*map(id, values)])

    def _called_with(self, frame: FrameType, key: Any, given: Sequence[int]) -> None:
        """A function with the same keys, and nothing else than before, is called again on purpose,
        as to measure its time."""
        before = self._before(frame, key, given)
        if before is not None and before[1] != given:
            self._report(frame, _AGAIN)

    def _drawn_with(self, inner: FrameType, key: Any) -> None:
        """A function of a library may draw as often as it likes, but be called once with a key."""
        frame = _of_user(inner)
        before = self._before(frame, key, ())
        if before is not None and (frame is inner or before[0] != frame.f_lasti):
            first, here = (Location(frame.f_code, i) for i in (before[0], frame.f_lasti))
            place = "the same line" if first.line == here.line else first
            self._report(frame, _AGAIN if before[0] == frame.f_lasti else f"{_SECOND} {place}")

    def _before(self, frame: FrameType, key: Any, given: Sequence[int]) -> Any:
        """Where the function that runs in ``frame`` came with ``key`` first, and with what else."""
        drawing = self._drawings.get(frame.f_code)
        if drawing is None or drawing.frame is not frame or len(drawing.drawn) >= KEPT:
            drawing = self._drawings[frame.f_code] = Drawing(frame)
        before = drawing.drawn.get(key)
        if before is None:
            drawing.drawn[key] = frame.f_lasti, given
        return before

    def _report(self, frame: FrameType, said: str) -> None:
        place, why = Location(frame.f_code, frame.f_lasti), "the same, or depend on each other"
        self.findings[P106.at(place, f"{said}: the numbers are {why}")] = None

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


def _of_user(frame: FrameType) -> FrameType:
    """The innermost frame from ``frame`` on that is not of a library, if there is one."""
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_filename.startswith(_INSTALLED):
        outer = outer.f_back
    return outer or frame


def _estimates(program: Program) -> bool:
    """Whether a function, or each of its lanes, returns numbers alone: then the same random numbers
    serve, as those are to be compared with each other."""
    frame = None if program.only is None else program.only.frame
    if frame is not None and isinstance(frame.runs, Lanes):
        (program,) = frame.programs
    return all(t.shape == () and dtypes.is_floating(t.dtype) for t in program.output_types)


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
