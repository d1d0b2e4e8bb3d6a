"""What shows that processes run different programs, in words.

The launches over a group of processes are numbered, and each has a sum, of its program and of the
sum before it: where sums are alike, so is all that was launched. A pulse has ``launches``, per
group (its processes, joined by commas) the last ones as (number, sum, name), and of earlier ones
every sixteenth, without a name. Who comes to a gather, or leaves, tells how many it has launched
over each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Pulses = Mapping[int, Mapping[str, Any]]
Counts = Mapping[str, int]


def topics(said: Mapping[int, str]) -> str:
    """Of processes that wait for each other with different things to say.

    >>> topics({0: "compile f", 1: "compile g", 2: "compile g"})
    'process 0 is at: compile f; processes 1, 2 are at: compile g'
    """
    by_topic: dict[str, list[int]] = {}
    for process, topic in sorted(said.items()):
        by_topic.setdefault(topic, []).append(process)
    return "; ".join(f"{who(every)} at: {topic}" for topic, every in by_topic.items())


def who(processes: list[int]) -> str:
    """Processes by their numbers, as the subject of a sentence.

    >>> who([2]), who([0, 1])
    ('process 2 is', 'processes 0, 1 are')
    """
    listed = ", ".join(map(str, processes))
    return f"process {listed} is" if len(processes) == 1 else f"processes {listed} are"


def launches(count: int) -> str:
    """A number of launches, in words.

    >>> launches(1), launches(3)
    ('1 launch', '3 launches')
    """
    return f"{count} launch{'es' * (count != 1)}"


class Sums:
    """The sums of the launches that processes have told of.

    >>> sums = Sums()
    >>> sums.differ({0: {"launches": {"0,1": [[3, 17, "f"], [4, 81, "f"]]}}})
    ''
    >>> sums.differ({1: {"launches": {"0,1": [[3, 17, "f"], [4, 93, "g"]]}}})
    'in launch 4 over processes 0,1: process 0 is at: f; process 1 is at: g'
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, int], tuple[int, int, str]] = {}

    def differ(self, pulses: Pulses) -> str:
        """The first launch that is not alike, by what is told now and before; "" if all are."""
        for process, pulse in pulses.items():
            for group, launches in pulse.get("launches", {}).items():
                alike = False
                for number, total, name in launches:
                    at = (group, number)
                    other, known, there = self._told.setdefault(at, (process, total, name))
                    if known != total:
                        names = {other: there, process: name}
                        return _text_of_difference(group, number, names, alike)
                    alike = other != process and (group, number + 1) in self._told
        while len(self._told) > _KEPT:
            del self._told[next(iter(self._told))]
        return ""


_KEPT = 10_000


def _text_of_difference(group: str, number: int, names: dict[int, str], exactly: bool) -> str:
    if exactly and len(set(names.values())) > 1:
        return f"in launch {number} over processes {group}: {topics(names)}"
    return f"launch {number} over processes {group}, or one before it, is not alike in all"


def ahead(said: Mapping[int, str], come: Mapping[int, Counts], absent: Pulses) -> str:
    """Who has launched something that others, who have come to a gather, have not; "" if nobody.

    Gathers and launches have one order, the same in all processes. So who is not there yet, but
    ahead in launches, comes too late or never. Those who have come have ``said`` what they are at.

    >>> pulses = {1: {"launches": {"0,1": [[4, 81, "f"]]}}}
    >>> ahead({0: "compile g"}, {0: {"0,1": 3}}, pulses)
    'process 0 is at: compile g; process 1 is at: launch 4 over processes 0,1, f'
    """
    names = {
        (process, group): {number: name for number, _, name in launches}
        for process, pulse in absent.items()
        for group, launches in pulse.get("launches", {}).items()
    }
    counts = [(p, g, max(numbers, default=0)) for (p, g), numbers in names.items()]
    counts += [(p, g, n) for p, launched in come.items() for g, n in launched.items()]
    for process, launched in come.items():
        at: dict[int, str] = {}
        for other, group, count in counts:
            next = launched.get(group, 0) + 1
            if count >= next and str(process) in group.split(","):
                name = names.get((other, group), {}).get(next, "")
                at[other] = f"launch {next} over processes {group}" + (f", {name}" if name else "")
        if at:
            return topics({**said, **at})
    return ""
