"""What shows that processes run different programs, in words.

The launches over a group of processes are numbered, and each has a sum, of its program and of the
sum before it: where sums are alike, so is all that was launched. Each process tells the coordinator
of its launches once, as (number, sum, name); of many at once only every sixteenth, without a name,
and the last ones. Who comes to a gather, or leaves, tells how many it has launched over each group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from phalanx.processes.forms import among, numbers

Launch = tuple[int, int, str]  # its number, the sum, and the name of the program
Counts = Mapping[str, int]  # of launches, by group


def topics(at: Mapping[int, str]) -> str:
    """Which processes are where, when they wait for each other with different things to say.

    >>> topics({0: "compile f", 1: "compile g", 2: "compile g"})
    'process 0 is at: compile f; processes 1, 2 are at: compile g'
    """
    by_topic: dict[str, list[int]] = {}
    for process, topic in sorted(at.items()):
        by_topic.setdefault(topic, []).append(process)
    return "; ".join(f"{who(every)} at: {topic}" for topic, every in by_topic.items())


def who(processes: list[int]) -> str:
    """Processes by their numbers, as the subject of a sentence.

    >>> who([2]), who([0, 1])
    ('process 2 is', 'processes 0, 1 are')
    """
    return f"process{'es' * (len(processes) > 1)} {numbers(processes, ', ')} " + (
        "is" if len(processes) == 1 else "are"
    )


def launches(count: int) -> str:
    """A number of launches, in words.

    >>> launches(1), launches(3)
    ('1 launch', '3 launches')
    """
    return f"{count} launch{'es' * (count != 1)}"


class Sums:
    """The launches that processes have told of.

    Attributes:
        last: those that were told last, by process and group.

    >>> sums = Sums()
    >>> sums.differ(0, {"0,1": [[3, 17, "f"], [4, 81, "f"]]})
    ''
    >>> sums.differ(1, {"0,1": [[3, 17, "f"], [4, 93, "g"]]})
    'in launch 4 over processes 0,1: process 0 is at: f; process 1 is at: g'
    """

    def __init__(self) -> None:
        self.last: dict[int, dict[str, Sequence[Launch]]] = {}
        self._first: dict[tuple[str, int], tuple[int, int, str]] = {}  # who told of it first

    def differ(self, process: int, reported: Mapping[str, Sequence[Launch]]) -> str:
        """The first launch that is not alike, by what is told now and before; "" if all are."""
        mine = self.last.setdefault(process, {})
        for group, launches in reported.items():
            mine[group] = [*mine.get(group, ()), *launches][-_LAST:]
            for number, total, name in launches:
                at = (group, number)
                other, known, there = self._first.setdefault(at, (process, total, name))
                if known != total:
                    names = {other: there, process: name}
                    exactly = self._are_alike(group, number - 1, names)
                    return _text_of_difference(group, number, names, exactly)
        while len(self._first) > _KEPT:
            del self._first[next(iter(self._first))]
        return ""

    def _are_alike(self, group: str, number: int, processes: Iterable[int]) -> bool:
        """Whether all of them have told of that launch, and it was the same."""
        sums = [{n: s for n, s, _ in self.last[p].get(group, ())}.get(number) for p in processes]
        return number == 0 or (None not in sums and len({*sums}) == 1)


_KEPT = 10_000
_LAST = 32  # no process is as many ahead of another


def _text_of_difference(group: str, number: int, names: dict[int, str], exactly: bool) -> str:
    if exactly and all(names.values()) and len({*names.values()}) > 1:
        return f"in launch {number} over processes {group}: {topics(names)}"
    return f"launch {number} over processes {group}, or one before it, is not alike in all"


def ahead(
    topics_of: Mapping[int, str],
    come: Mapping[int, Counts],
    absent: Mapping[int, Mapping[str, Sequence[Launch]]],
    count: int,
) -> str:
    """Who has launched something that others, who have come to a gather, have not; "" if nobody.

    Those who have come have told what they are at, ``topics_of``. So whoever is ``absent``, but
    ahead in launches, comes too late or never. There are ``count`` processes in all.

    >>> last = {1: {"0,1": [[4, 81, "f"]]}}
    >>> ahead({0: "compile g"}, {0: {"0,1": 3}}, last, 2)
    'process 0 is at: compile g; process 1 is at: launch 4 over processes 0,1, f'
    """
    counts = [
        (g, p, _number(launches)) for p, each in absent.items() for g, launches in each.items()
    ]
    counts += [(g, p, n) for p, launched in come.items() for g, n in launched.items()]
    most: dict[str, int] = {}
    for group, _, number in counts:
        most[group] = max(number, most.get(group, 0))
    for process, launched in come.items():
        behind = {
            group: launched.get(group, 0) + 1
            for group, number in most.items()
            if number > launched.get(group, 0) and process in among(group, count)
        }
        if behind:
            at = {
                p: _launch_in_words(behind[group], group, absent.get(p, {}).get(group, ()))
                for group, p, number in counts
                if number >= behind.get(group, number + 1)
            }
            return topics({**topics_of, **at})
    return ""


def _number(launches: Iterable[Launch]) -> int:
    """How many launches there were, of which these are the last."""
    return max([number for number, _, _ in launches], default=0)


def _launch_in_words(number: int, group: str, launches: Iterable[Launch]) -> str:
    name = next((f", {name}" for n, _, name in launches if n == number and name), "")
    return f"launch {number} over processes {group}{name}"
