"""Enumerations that users name: what is none of their values is told at the user's line."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from phalanx.base.errors import nearest


class _Choices(enum.EnumType):
    """The class of such enumerations."""

    if not TYPE_CHECKING:  # who knows what calls and items of an enumeration are

        def __call__(cls, *args: Any, **named: Any) -> Any:
            try:
                return super().__call__(*args, **named)
            except (TypeError, ValueError):
                raise ValueError(cls._lacks((*args, *named.values()))) from None

        def __getitem__(cls, name: str) -> Any:
            try:
                return super().__getitem__(name)
            except KeyError:
                raise KeyError(cls._lacks((name,))) from None

        def _lacks(cls, args: tuple[Any, ...]) -> str:
            """That what was given is none of the values, which there are, and which is near."""
            all_of = ", ".join(f"{name} ({m.value!r})" for name, m in cls.__members__.items())
            words = {str(w).lower(): n for n, m in cls.__members__.items() for w in (m.value, n)}
            near = nearest(str(args[0]).lower(), words) if args else None
            hint = f". Did you mean {cls.__name__}.{words[near]}?" if near else ""
            got = ", ".join(map(repr, args)) or "nothing"
            return f"{cls.__name__}: its values are {all_of}, got {got}{hint}"


class Choice(enum.Enum, metaclass=_Choices):
    """An enumeration whose values users name."""


class IntChoice(enum.IntEnum, metaclass=_Choices):
    """One whose values are integers."""
