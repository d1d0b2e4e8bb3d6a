"""What shows that processes run different programs, in words.

The launches over a group of processes are numbered, and each has a sum, of its program and of the
sum before it: where sums are alike, so is all that was launched. A pulse has ``launches``, per
group (its processes, joined by commas) the last ones as (number, sum, name), and of earlier ones
every sixteenth, without a name; ``launching``, the group, number, name and seconds of one that has
not returned; and ``gathering``, the key, topic and seconds of a gather that has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Pulses = Mapping[int, Mapping[str, Any]]


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
                        return _told(group, number, {other: there, process: name}, alike)
                    alike = other != process and (group, number + 1) in self._told
        while len(self._told) > _KEPT:
            del self._told[next(iter(self._told))]
        return ""


_KEPT = 10_000


def _told(group: str, number: int, names: dict[int, str], exactly: bool) -> str:
    if exactly and len(set(names.values())) > 1:
        return f"in launch {number} over processes {group}: {topics(names)}"
    return f"launch {number} over processes {group}, or one before it, is not alike in all"


def waits(pulses: Pulses, stuck: float) -> str:
    """A process in a launch, and one of its group that gathers instead; "" if there are none."""
    for process, pulse in pulses.items():
        group, number, name, seconds = pulse.get("launching") or ("", 0, "", 0.0)
        if seconds < stuck:
            continue
        for other in map(int, group.split(",")):
            gathering = pulses.get(other, {}).get("gathering")
            last = pulses.get(other, {}).get("launches", {}).get(group, [])
            behind = not last or last[-1][0] < number
            if gathering and gathering[2] >= stuck and behind and not pulse.get("gathering"):
                said = {process: f"launch {number} of {name}", other: gathering[1]}
                return topics(said)
    return ""
