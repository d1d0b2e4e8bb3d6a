"""What members may say to the coordinator: what has no such form is refused, not handled."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from phalanx.processes.wire import Message

Form = Callable[[Any], bool]


def is_text(x: Any) -> bool:
    return isinstance(x, str)


def is_number(x: Any) -> bool:
    return type(x) is int


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool)


def _is_named(x: Any) -> bool:
    return isinstance(x, dict)


def _is_counts(x: Any) -> bool:
    """How many launches there were, by group."""
    return isinstance(x, dict) and all(map(is_number, cast(dict[Any, Any], x).values()))


def _is_launches(x: Any) -> bool:
    """New launches by group, each as (number, sum, name)."""
    return isinstance(x, dict) and all(map(_are_launches, cast(dict[Any, Any], x).values()))


def _are_launches(x: Any) -> bool:
    return isinstance(x, list) and all(map(_is_launch, cast(list[Any], x)))


def _is_launch(x: Any) -> bool:
    return isinstance(x, list) and [*map(type, cast(list[Any], x))] == [int, int, str]


def _is_meeting(x: Any) -> bool:
    """The processes that gather, and a number, as ``0,1/3`` or ``0-1023/3``."""
    return is_text(x) and _MEETING.fullmatch(x) is not None


_GROUP = r"\d{1,9}(?:-\d{1,9})?"
_GROUPS = re.compile(rf"{_GROUP}(,{_GROUP})*", re.ASCII)
_MEETING = re.compile(rf"{_GROUPS.pattern}/\d{{1,18}}", re.ASCII)

SAID: dict[str, dict[str, Form]] = {
    "pulse": {"launches": _is_launches},
    "gather": {
        "key": _is_meeting,
        "topic": is_text,
        "detail": is_text,
        "value": lambda x: True,
        "compared": _is_named,
        "launched": _is_counts,
        "launches": _is_launches,
    },
    "set": {"key": is_text, "value": is_text},
    "get": {"key": is_text, "number": is_number, "wait": _is_bool},
    "no more": {"key": is_text, "number": is_number},
    "delete": {"key": is_text},
    "failed": {"traceback": is_text},
    "give up": {"waited": is_text, "advice": is_text},
    "bye": {"launched": _is_counts},
}


def numbers(processes: Iterable[int], between: str = ",") -> str:
    """Ascending numbers of processes in few words.

    >>> numbers([0, 1, 2, 3]), numbers([0, 2, *range(5, 1024)], ", ")
    ('0,1,2,3', '0, 2, 5-1023')
    """
    runs: list[list[int]] = []
    for process in processes:
        if runs and process == runs[-1][-1] + 1:
            runs[-1].append(process)
        else:
            runs.append([process])
    told = [f"{r[0]}-{r[-1]}" if len(r) >= _RUN else between.join(map(str, r)) for r in runs]
    return between.join(told)


_RUN = 5  # numbers in a row from which on the first and the last are told


def first_of(processes: str) -> int:
    """The first of those that ``numbers`` tells.

    >>> first_of("3, 5-1023"), first_of("5-1023")
    (3, 5)
    """
    return int(processes.partition(",")[0].partition("-")[0])


@functools.lru_cache(256)
def among(group: str, count: int) -> frozenset[int]:
    """The processes of a group, as ``numbers`` tells them; none if these are not of ``count``.

    >>> sorted(among("0,2", 3)), among("2,0", 3), among("0-999999999", 3)
    ([0, 2], frozenset(), frozenset())
    """
    if not _GROUPS.fullmatch(group):
        return frozenset()
    there: list[int] = []
    for run in group.split(","):
        first, _, last = run.partition("-")
        if int(last or first) >= count:
            return frozenset()
        there += range(int(first), int(last or first) + 1)
    in_order = there == sorted({*there}) and numbers(there) == group
    return frozenset(there) if in_order else frozenset()


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
    return process in among(message["key"].partition("/")[0], count)
