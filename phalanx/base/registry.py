"""The library ``optree``, whose table of classes of trees lasts until Python has ended.

``optree`` empties that table, tuples and dicts included, in functions that Python runs at exit.
What users registered before runs after that, as does the rest of a program that calls
``atexit._run_exitfuncs()`` (tests do), and would find that every tree is a leaf. Nothing needs it
to be empty: its memory goes back with the process. Where ``optree`` was imported before phalanx,
its functions cannot be told from those of others, and stay.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

__all__ = ["SPACE", "optree"]

SPACE = "phalanx"  # where the classes that users register stand


class _Seen:
    """What ``atexit.unregister`` compares with every function that is registered: none is it."""

    def __init__(self) -> None:
        self.functions: list[Callable[..., Any]] = []

    def __eq__(self, other: object) -> bool:
        if callable(other):
            self.functions.append(other)
        return False

    __hash__ = None  # type: ignore[assignment]


def _run_at_exit() -> list[Callable[..., Any]]:
    seen = _Seen()
    atexit.unregister(seen)  # type: ignore[arg-type]
    return seen.functions


_before = _run_at_exit()

import optree  # noqa: E402 - between the looks at what runs at exit

for _function in _run_at_exit():
    if isinstance(_function, BuiltinFunctionType) and _function not in _before:
        atexit.unregister(_function)
