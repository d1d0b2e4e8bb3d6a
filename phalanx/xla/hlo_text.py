"""The text of a compiled program, HLO: its computations, how often they run, the user's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct, field

_COMPUTATION = re.compile(r"^(?:ENTRY )?%(\S+) .*\{$")
_CALLED = re.compile(
    r"(?:body|condition|calls|to_apply|true_computation|false_computation)=%([^\s,)]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_LOOP = re.compile(r" while\(%([^\s,)]+)\), condition=%([^\s,)]+)")
_COUNTED = re.compile(r" compare\(%([^\s,)]+), %([^\s,)]+)\), direction=LT")
_NAME = re.compile(r"^\s+(?:ROOT )?%(\S+) = ")
_FRAME = re.compile(r"stack_frame_id=(\d+)")


class HloModule:
    """A compiled program.

    Attributes:
        text: of it.
        computations: by name; callers stand behind what they call, the program itself last.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.computations = _computations_of(text)

    @cached_property
    def runs(self) -> dict[str, int]:
        """How often each computation runs in a call. In a loop of unknown length, once."""
        return _runs_of(self.computations)

    @cached_property
    def places(self) -> dict[int, str]:
        """``file:line (function)`` by the number of the frame, as the head of the text has them."""
        return _places_of(self.text)


class Computation(Struct):
    """The lines of its instructions."""

    lines: list[str] = field(default_factory=list[str])

    def called(self, others: Mapping[str, Computation]) -> Iterator[tuple[str, int]]:
        """Those of the ``others`` that they run, with how often."""
        for line in self.lines:
            if "=%" not in line and "={%" not in line:
                continue
            trips, loop = _TRIPS.search(line), _LOOP.search(line)
            often = int(trips[1]) if trips else 1
            if loop is not None and not trips and loop[2] in others:
                often = self._counted(loop[1], others[loop[2]]) or 1
            for name in _CALLED.findall(line):
                yield name, often
            for listed in _BRANCHES.findall(line):
                for name in re.findall(r"%([^\s,]+)", listed):
                    yield name, 1

    def _counted(self, start: str, condition: Computation) -> int | None:
        """How often a loop runs that counts from 0, where the compiler does not say it."""
        compared = next(filter(None, map(_COUNTED.search, condition.lines)), None)
        if compared is None:
            return None
        number, bound = compared.groups()
        place = re.search(r"index=(\d+)", condition.line_of(number))
        begun = re.findall(r"%([^\s,)]+)", self.line_of(start).partition(" tuple(")[2])
        if place is None or int(place[1]) >= len(begun):
            return None
        return condition._constant(bound) if self._constant(begun[int(place[1])]) == 0 else None

    def _constant(self, name: str) -> int | None:
        line = self.line_of(name)
        copied = re.search(r" copy\(%([^\s,)]+)\)", line)
        value = re.search(r" constant\((-?\d+)\)", line)
        return self._constant(copied[1]) if copied else int(value[1]) if value else None

    def line_of(self, name: str) -> str:
        """The instruction called ``name``; "" if there is none."""
        return next((x for x in self.lines if (m := _NAME.match(x)) and m[1] == name), "")


def _computations_of(text: str) -> dict[str, Computation]:
    computations: dict[str, Computation] = {}
    current = Computation()
    for line in text.splitlines():
        head = _COMPUTATION.match(line)
        if head is not None:
            current = computations[head[1]] = Computation()
        elif line.startswith("  "):
            current.lines.append(line)
    return computations


def _runs_of(computations: Mapping[str, Computation]) -> dict[str, int]:
    often = dict.fromkeys(computations, 0)
    for name in list(computations)[-1:]:
        often[name] = 1
    for name in reversed(list(computations)):
        for called, times in computations[name].called(computations):
            often[called] = often.get(called, 0) + often[name] * times
    return often


# ---- the user's lines ---------------------------------------------------------------------------


def _places_of(text: str) -> dict[int, str]:
    files, functions = _strings(text, "FileNames"), _strings(text, "FunctionNames")
    lines = {
        int(n): f"{files[int(file)]}:{line} ({functions[int(function)]})"
        for n, file, function, line in re.findall(
            r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+) line=(\d+)", text, re.MULTILINE
        )
    }
    frames = re.findall(r"^(\d+) \{file_location_id=(\d+)", text, re.MULTILINE)
    return {int(n): lines[int(line)] for n, line in frames}


def place_of(instruction: str, places: Mapping[int, str]) -> str:
    """Where the user wrote what became an instruction; "" where that is not told."""
    frame = _FRAME.search(instruction)
    return places.get(int(frame[1]), "") if frame else ""


def _strings(text: str, title: str) -> dict[int, str]:
    listed = re.search(rf"^{title}\n((?:\d+ \".*\"\n)*)", text, re.MULTILINE)
    rows = re.findall(r"^(\d+) \"(.*)\"$", listed[1], re.MULTILINE) if listed else []
    return {int(n): name for n, name in rows}
