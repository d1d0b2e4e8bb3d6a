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
from phalanx.base import dtypes
from phalanx.base.extended import is_key
from phalanx.base.source import Location, is_installed, is_internal, user_frame
from phalanx.core.program import Program
from phalanx.core.runs import Lanes
from phalanx.core.types import Array, typeof
from phalanx.insight.checks.findings import Finding
from phalanx.insight.checks.loops import P114
from phalanx.insight.checks.reused_keys import P106
from phalanx.insight.keys import KeyDrawn, keys_drawn
from phalanx.run.array import words_of
from phalanx.run.calls import on_called

__all__ = ["Between", "watching_between"]

MANY_TIMES, MANY_OPERATIONS, MANY_PER_CALL = 500, 3000, 3
LARGEST = 4096  # elements of what keys are made of, that is looked at
MOST_KEYS = 10_000  # keys of a function
DEPTH = 24  # of frames, in which callers are looked for
_AGAIN = "a Python loop uses the same key here again"
_SECOND = "the key is used here for the second time, after"

Spot = tuple[CodeType, int]


class Drawing(Struct):
    """With what a function of the user's has drawn numbers so far, while it runs: where, and what
    was given there; and how often it called a library, of which it ``called`` the last one."""

    frame: FrameType
    drawn: dict[Any, tuple[int, Any]] = field(default_factory=dict[Any, tuple[int, Any]])
    called: FrameType | None = None
    calls: int = 0


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
        for n, drawn, held in _keys(program, values):
            if not is_of_user:
                key = values[min(drawn.inputs)]
                self._drawn_with(frame, (n, *held), None if drawn.is_split else (program, key))
            elif not _estimates(program):
                self._called_with(frame, (id(program), n, *held), [*map(id, values)])
                if drawn.is_external:
                    self._passed_to(frame, held, program)

    def _called_with(self, inner: FrameType, key: Any, numbers: Sequence[int]) -> None:
        """A function with the same keys, and nothing else than before, is called again on purpose,
        as to measure its time; a library may call one as often as it likes, in one call of it."""
        frame = _of_user(inner)
        call = self._call(frame, inner)
        before = self._before(frame, (frame.f_lasti, *key), (call, numbers))
        if (
            before is not None
            and before[1][1] != numbers
            and (inner is frame or before[1][0] != call)
        ):
            self._report(frame, _AGAIN)

    def _call(self, frame: FrameType, inner: FrameType) -> int:
        """Which of the calls of libraries by the function in ``frame`` runs in ``inner``."""
        while inner is not frame and inner.f_back not in (None, frame):
            inner = inner.f_back
        drawing = self._drawing(frame)
        if drawing.called is not inner:
            drawing.called, drawing.calls = inner, drawing.calls + 1
        return drawing.calls

    def _passed_to(self, frame: FrameType, held: Any, program: Program) -> None:
        """One key is for one function; two whose results have the same types may be compared, and
        sizes in one line."""
        before = self._before(frame, ("given", *held), program)
        if before is None or before[0] == frame.f_lasti:
            return
        if before[1].output_types != program.output_types:
            self._report_second(frame, before[0])

    def _drawn_with(self, inner: FrameType, key: Any, drawn: tuple[Program, Any] | None) -> None:
        """A function of a library may draw as often as it likes, but be called once with a key."""
        frame = _of_user(inner)
        before = self._before(frame, key, ())
        if before is None:
            if drawn is not None:
                self._drawn_inside(frame, key, *drawn)
        elif frame is inner or before[0] != frame.f_lasti:
            self._report_second(frame, before[0])

    def _drawn_inside(self, inner: FrameType, key: Any, program: Program, held: Any) -> None:
        """A function draws with a key that is ``held`` by an object, in a call from a function that
        had others draw with it.

        The same numbers may be drawn again to compare what is made of them, and in a loop others of
        another size, with a key that is given or made there; not by a function that gets it
        elsewhere each time, nor other numbers in another line.
        """
        for frame in _callers(inner):
            before = self._before(frame, ("inside", *key), (program, held))
            if before is None:
                continue
            first, (other, same) = before[0], (before[1][0], before[1][1] is held)
            if first == frame.f_lasti:
                if other is program and same and not _has(inner, held):
                    self._report(inner, _AGAIN)
            elif other is not program and (same or _takes_a_key(inner)):
                self._report_second(frame, first)
            return

    def _report_second(self, frame: FrameType, first: int) -> None:
        """The same key, behind where it was used ``first``."""
        place, here = (Location(frame.f_code, i) for i in (first, frame.f_lasti))
        where = "the same line" if place.line == here.line else place
        self._report(frame, _AGAIN if first == frame.f_lasti else f"{_SECOND} {where}")

    def _before(self, frame: FrameType, key: Any, numbers: Any) -> Any:
        """Where the function that runs in ``frame`` came with ``key`` first, and with what else."""
        drawn = self._drawing(frame).drawn
        before = drawn.get(key)
        if before is None:
            drawn[key] = frame.f_lasti, numbers
        return before

    def _drawing(self, frame: FrameType) -> Drawing:
        drawing = self._drawings.get(frame.f_code)
        if drawing is None or drawing.frame is not frame or len(drawing.drawn) >= MOST_KEYS:
            drawing = self._drawings[frame.f_code] = Drawing(frame)
        return drawing

    def _report(self, frame: FrameType, text: str) -> None:
        place, why = Location(frame.f_code, frame.f_lasti), "the same, or depend on each other"
        self.findings[P106.at(place, f"{text}: the numbers are {why}")] = None

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
                    f"Python loops ran {count:,} operations here one by one, {times:,} of them in "
                    "this line: each takes as long as the call of a compiled function",
                    "Compile the body with jit, or the whole loop with lax.scan or lax.fori_loop; "
                    "for independent iterations use vmap.",
                )


def _of_user(frame: FrameType) -> FrameType:
    """The innermost frame from ``frame`` on that is not of a library, if there is one."""
    outer: FrameType | None = frame
    while outer is not None and is_installed(outer.f_code.co_filename):
        outer = outer.f_back
    return outer or frame


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """The functions of the user's that called that of ``frame``, the nearest first."""
    outer = frame.f_back
    for _ in range(DEPTH):
        if outer is None:
            return
        file = outer.f_code.co_filename
        if not (is_installed(file) or is_internal(file)):
            yield outer
        outer = outer.f_back


def _has(frame: FrameType, key: Any) -> bool:
    """Whether a variable of the function is the key, as an argument is."""
    return any([x is key for x in frame.f_locals.values()])


def _takes_a_key(frame: FrameType) -> bool:
    """Whether an argument of the function is a key, so that its keys are made of what others know,
    and not of a seed of its own."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    arrays = [x for name in names if isinstance(x := frame.f_locals.get(name), Array)]
    return any([is_key(x.dtype) or (x.dtype == np.uint32 and x.shape == (2,)) for x in arrays])


def _estimates(program: Program) -> bool:
    """Whether a function, or each of its lanes, returns numbers alone: then the same random numbers
    serve, as those are to be compared with each other."""
    frame = None if program.only is None else program.only.frame
    if frame is not None and isinstance(frame.runs, Lanes):
        (program,) = frame.programs
    return all(t.shape == () and dtypes.is_floating(t.dtype) for t in program.output_types)


def _keys(program: Program, values: Sequence[Any]) -> Iterator[tuple[int, KeyDrawn, Any]]:
    """The keys with which ``program`` of ``values`` draws numbers, and what these are made of."""
    for n, drawn in enumerate(keys_drawn(program)):
        held = [_held(values[i]) for i in sorted(drawn.inputs)]
        if held and None not in held:
            yield n, drawn, held


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
