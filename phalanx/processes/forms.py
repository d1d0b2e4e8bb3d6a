"""What members may say to the coordinator: what has no such form is refused, not handled."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from phalanx.processes.wire import Message

_GROUP = r"\d{1,9}(?:-\d{1,9})?"
_GROUPS = re.compile(rf"{_GROUP}(,{_GROUP})*", re.ASCII)
_MEETING = rf"\A(?a:{_GROUPS.pattern}/\d{{1,18}})\Z"

Counts = dict[str, int]  # how many launches there were, by group
Launches = dict[str, list[tuple[int, int, str]]]  # new ones by group, as (number, sum, name)
Meeting = Annotated[str, msgspec.Meta(pattern=_MEETING)]  # as 0,1/3 or 0-1023/3: with a number

MESSAGES: dict[str, dict[str, Any]] = {
    "pulse": {"launches": Launches},
    "gather": {
        "key": Meeting,
        "topic": str,
        "detail": str,
        "value": Any,
        "compared": dict[str, Any],
        "launched": Counts,
        "launches": Launches,
    },
    "set": {"key": str, "value": str},
    "get": {"key": str, "number": int, "wait": bool},
    "no more": {"key": str, "number": int},
    "delete": {"key": str},
    "failed": {"traceback": str},
    "give up": {"waited": str, "advice": str},
    "bye": {"launched": Counts},
}
CALLS: dict[str, dict[str, Any]] = {  # the first messages on a connection
    "runtime": {"token": str},
    "join": {
        "token": str,
        "process": int,
        "count": int,
        "attempt": int,
        "host": str,
        "pid": int,
        "silence": float,
        "phalanx": str,
        "runtime": str,
        "platform": str,
        "devices": int,
    },
}
_FORMS = {what: msgspec.defstruct("Form", fields.items()) for what, fields in MESSAGES.items()}
_FORMS_OF_CALLS = {what: msgspec.defstruct("Form", f.items()) for what, f in CALLS.items()}


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
    parts = [f"{r[0]}-{r[-1]}" if len(r) >= _RUN else between.join(map(str, r)) for r in runs]
    return between.join(parts)


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


def is_call(message: Message) -> bool:
    """Whether a connection may begin with that."""
    return _fits(message, _FORMS_OF_CALLS)


def is_understood(message: Message, process: int, count: int) -> bool:
    """Whether ``process`` of ``count`` may say that.

    >>> is_understood({"what": "set", "key": "a", "value": "b"}, 0, 2)
    True
    >>> is_understood({"what": "set", "key": "a", "value": 3}, 0, 2)
    False
    """
    if not _fits(message, _FORMS):
        return False
    if message["what"] != "gather":
        return True
    return process in among(message["key"].partition("/")[0], count)


def _fits(message: Message, forms: dict[str, type[msgspec.Struct]]) -> bool:
    what = message.get("what")
    if not isinstance(what, str) or what not in forms:
        return False
    try:
        msgspec.convert(message, forms[what])
    except msgspec.ValidationError:
        return False
    return True
