"""Processes that launch the same programs in the same order, and compare what must be alike."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from phalanx.base.config import config
from phalanx.processes.forms import numbers
from phalanx.processes.wire import Message

if TYPE_CHECKING:
    from phalanx.processes.member import Member

_REMEMBERED = 4096  # launches
_LAST = 32  # of them are told at once by name
_SOME = 16  # of the others every so many
_MODULUS = (1 << 61) - 1

Differing = list[tuple[str, Any]]  # some values, each with the numbers of processes that have it


class Group:
    """Processes over which programs are launched together, all in the same order."""

    def __init__(self, member: Member, processes: frozenset[int]) -> None:
        self.processes = processes
        self.key = numbers(sorted(processes))
        self.count = self.total = 0
        self.last: deque[tuple[int, int, str]] = deque(maxlen=_REMEMBERED)
        self._reported = 0
        self._met: set[int] = set()  # the programs for whose first launch all have met
        self._launched = Counter[int]()  # how often each program was launched
        self.gathers = 0
        self.member = member

    def launch(self, program: int, name: str) -> bool:
        """A launch of ``program`` begins; gives whether it is the first one.

        Raises:
            PeerLost, ProgramMismatch: nothing can be launched any more.
        """
        member = self.member
        if member.verdict is not None or member.gone:
            member.check(name, self)
        if program not in self._met:
            self.meet(program, name, lambda group, topic: group.gather(topic, None))
        first = not self._launched[program]
        self._launched[program] += 1
        self.count += 1
        self.total = (self.total * 1_000_003 + program) % _MODULUS
        self.last.append((self.count, self.total, name))
        member.latest = (self, self.count, name)
        return first

    def meet(self, program: int, name: str, compare: Callable[[Group, str], Any]) -> None:
        """Before the first launch of ``program``, ``compare`` by a gather what is to be alike.

        Gloo connects in that launch, and waits for all: after this none of them compiles any more,
        or is gone. ``debug_replicated`` says after how many launches to compare again.

        Raises:
            PeerLost, ProgramMismatch: somebody is gone, launches something else, or differs.
        """
        count, often = self._launched[program], config.debug_replicated
        if program not in self._met:
            compare(self, f"the first launch of {name}")
            self._met.add(program)
        elif often and count and count % often == 0:
            compare(self, f"launch {count + 1} of {name}")

    def news(self) -> list[tuple[int, int, str]]:
        """The launches that were not told yet: the last ones, and of those before some."""
        count = self.count - self._reported
        if not count:
            return []
        new = list(itertools.islice(reversed(self.last), count))[::-1]
        self._reported = new[-1][0]
        before, last = new[:-_LAST], new[-_LAST:]
        return [(n, total, "") for n, total, _ in before if n % _SOME == 0] + last

    def names(self) -> str:
        """The last launches by name, in words."""
        runs = [(n, sum(1 for _ in same)) for n, same in itertools.groupby(x[2] for x in self.last)]
        names = ", ".join(name if n == 1 else f"{name} ({n} times)" for name, n in runs[-6:])
        return f"the last launches over processes {self.key} here were {names}"

    def launch_in_words(self, number: int) -> str:
        """The launch of that ``number``, in words."""
        name = next((f" ({name})" for n, _, name in self.last if n == number), "")
        return f"launch {number}{name} over {self}"

    def __str__(self) -> str:
        return f"processes {self.key}"

    def gather(
        self, topic: str, value: Any, patience: float | None = None, detail: str = ""
    ) -> list[Any]:
        """What every process of the group gives, in order; all of them say the same ``topic``.

        Where some do something else, ``detail`` is told with it. Values in a row that are the same
        are told once: so what is the same in all costs little, and else all hear of all.

        Raises:
            PeerLost: one of them is gone.
            ProgramMismatch: one of them has something else to say.
            RendezvousError: somebody has not come after ``patience`` seconds.
            ValueError: what this one gives is too long.
        """
        answer = self.member.gather(
            self, topic, patience, value=value, detail=detail, compared=dict[str, Any]()
        )
        return _expanded(answer)

    def compare(
        self, topic: str, compared: Mapping[str, Any], value: Any = None
    ) -> tuple[dict[str, Differing], list[Any]]:
        """What differs of the ``compared``, by name, and what every process gives as ``value``.

        The coordinator compares, and tells only what differs, of many things some. What a process
        does not name is not compared with what it has.

        Raises:
            PeerLost, ProgramMismatch, ValueError: as ``gather``.
        """
        answer = self.member.gather(self, topic, None, value=value, detail="", compared=compared)
        return answer["differing"], _expanded(answer)


def _expanded(answer: Message) -> list[Any]:
    return [value for length, value in answer["runs"] for _ in range(length)]
