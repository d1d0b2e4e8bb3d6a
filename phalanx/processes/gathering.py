"""What processes have told the coordinator so far of what it gathers from all of them."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from phalanx.processes import differing, forms
from phalanx.processes.watched import Lateness
from phalanx.processes.wire import Message, encoded

_NAMED = 4  # of values that differ
_DIFFERING = 256  # names of what differs


class Gathering:
    """What the processes ``among`` which something is gathered have said so far."""

    def __init__(self, key: str, count: int) -> None:
        self.group = key.partition("/")[0]
        self.among = forms.among(self.group, count)
        self.topics: dict[int, str] = {}
        self.values: dict[int, str] = {}  # as JSON
        self.compared: dict[str, dict[str, list[int]]] = {}  # who says what, as JSON, by key
        self.launched: dict[int, differing.Counts] = {}
        self.late = Lateness()
        self.since = 0.0  # the last of them came
        self._details: dict[int, str] = {}  # more words for topics

    @property
    def topic(self) -> str:
        return next(iter(self.topics.values()))

    @property
    def positions(self) -> dict[int, str]:
        """What those who have come are at, in words."""
        return {i: f"{topic} {self._details[i]}".rstrip() for i, topic in self.topics.items()}

    def come(self, process: int, message: Message) -> None:
        """Note what ``process`` says."""
        self.topics[process], self._details[process] = message["topic"], message["detail"]
        self.values[process] = json.dumps(message["value"])
        for name, value in message["compared"].items():
            values = self.compared.setdefault(name, {})
            values.setdefault(json.dumps(value), []).append(process)
        self.launched[process] = message["launched"]
        self.since = time.monotonic()

    def absent(self) -> frozenset[int]:
        """Those who have not come."""
        return self.among - self.values.keys()

    def answer(self, key: str) -> bytes:
        """What all have given, in order, those in a row that are the same as one; and what differs
        of what they compare."""
        values = [self.values[i] for i in sorted(self.among)]
        runs = [f"[{len([*same])}, {value}]" for value, same in itertools.groupby(values)]
        differing = {n: values for n, values in self.compared.items() if len(values) > 1}
        some = {n: _by_processes(differing[n]) for n in itertools.islice(differing, _DIFFERING)}
        head = encoded({"what": "gathered", "key": key, "differing": some})
        return head[:-2] + f', "runs": [{", ".join(runs)}]}}\n'.encode()


def _by_processes(compared: dict[str, list[int]]) -> list[tuple[str, Any]]:
    """Some of the values that were compared, each with the processes that have it."""
    first = sorted((sorted(processes), value) for value, processes in compared.items())[:_NAMED]
    return [(forms.numbers(processes, ", "), json.loads(value)) for processes, value in first]
