"""What processes store at the coordinator for all of them, and who waits for what."""

from __future__ import annotations

from phalanx.processes.line import Line
from phalanx.processes.wire import Message


class KeyValueStore:
    """Values by their keys."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._asked: dict[str, dict[tuple[int, int], Line]] = {}  # by process and number

    def receive(self, process: int, line: Line, message: Message) -> None:
        """Do what ``process`` asks for, which hears the answer on ``line``."""
        key = message["key"]
        match message["what"]:
            case "set":
                self._values[key] = value = message["value"]
                for (_, number), asking in self._asked.pop(key, {}).items():
                    asking.send(what="got", number=number, value=value)
            case "get" if key in self._values or not message["wait"]:
                line.send(what="got", number=message["number"], value=self._values.get(key))
            case "get":
                self._asked.setdefault(key, {})[process, message["number"]] = line
            case "no more":
                asked = self._asked.get(key, {})
                asked.pop((process, message["number"]), None)
                if not asked:
                    self._asked.pop(key, None)
            case _:
                self._values.pop(key, None)
