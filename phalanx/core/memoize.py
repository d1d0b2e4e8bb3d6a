"""What is made of a program is stored with it, made once, and lives and dies with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from phalanx.base.config import settings
from phalanx.core.program import Program

T = TypeVar("T")


def memoize_on(program: Program, key: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` makes of ``program``; made once for each ``key``, which must not hold it, and
    for the options here: rules may ask for them, the user's and ours."""
    place = settings().key, key
    found = program.derived[place]
    if found is None:
        found = make()
        program.derived[place] = _NOTHING if found is None else found
    return found if found is not _NOTHING else None  # type: ignore[return-value]


_NOTHING: Any = object()  # in place of None, which stands for what has not been made
