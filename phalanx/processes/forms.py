"""What members may say to the coordinator: what has no such form is refused, not handled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from phalanx.processes.wire import Message

Form = Callable[[Any], bool]


def is_text(x: Any) -> bool:
    return isinstance(x, str)


def is_number(x: Any) -> bool:
    return type(x) is int


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool)


def _is_counts(x: Any) -> bool:
    """How many launches there were, by group."""
    return isinstance(x, dict) and all(map(is_number, cast(dict[Any, Any], x).values()))


def _is_launches(x: Any) -> bool:
    """The last launches by group, each as (number, sum, name)."""
    return isinstance(x, dict) and all(map(_are_launches, cast(dict[Any, Any], x).values()))


def _are_launches(x: Any) -> bool:
    return isinstance(x, list) and all(map(_is_launch, cast(list[Any], x)))


def _is_launch(x: Any) -> bool:
    return isinstance(x, list) and [*map(type, cast(list[Any], x))] == [int, int, str]


def _is_meeting(x: Any) -> bool:
    """The processes that gather, and a number, as ``0,1/3``."""
    return is_text(x) and _MEETING.fullmatch(x) is not None


_MEETING = re.compile(r"\d{1,9}(,\d{1,9})*/\d{1,18}", re.ASCII)

SAID: dict[str, dict[str, Form]] = {
    "pulse": {"launches": _is_launches},
    "gather": {
        "key": _is_meeting,
        "topic": is_text,
        "detail": is_text,
        "value": lambda x: True,
        "launched": _is_counts,
        "launches": _is_launches,
    },
    "set": {"key": is_text, "value": is_text},
    "get": {"key": is_text, "number": is_number, "wait": _is_bool},
    "no more": {"key": is_text, "number": is_number},
    "delete": {"key": is_text},
    "failed": {"traceback": is_text},
    "give up": {"why": is_text},
    "bye": {"launched": _is_counts},
}


def among(key: str) -> tuple[int, ...]:
    """The processes of a meeting.

    >>> among("0,2/3")
    (0, 2)
    """
    return tuple(map(int, key.partition("/")[0].split(",")))


def is_understood(message: Message, process: int, count: int) -> bool:
    """Whether ``process`` of ``count`` may say that.

    >>> is_understood({"what": "set", "key": "a", "value": "b"}, 0, 2)
    True
    >>> is_understood({"what": "set", "key": "a", "value": 3}, 0, 2)
    False
    """
    forms = SAID.get(message["what"]) if is_text(message.get("what")) else None
    if forms is None or not all(n in message and form(message[n]) for n, form in forms.items()):
        return False
    if message["what"] != "gather":
        return True
    there = among(message["key"])
    return process in there and there[-1] < count and sorted({*there}) == [*there]
