"""Lines of the user's in messages and programs: what others say of theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from msgspec import Struct

from phalanx.base.boundary import excluded, hiding
from phalanx.base.source import Location, is_ours, user_location

F = TypeVar("F", bound=Callable[..., Any])


_exclude_paths = excluded


def register_exclusion(path: str) -> None:
    """Lines of the file at ``path`` are not the user's."""
    _exclude_paths.append(path)


def api_boundary(fun: F, **_: Any) -> F:
    """``fun``, whose exceptions show no frames of ours, nor of files that are excluded."""
    return hiding(fun)


def include_frame(frame: Any) -> bool:
    """Whether a traceback shows ``frame``: neither ours nor of a library that asked for that."""
    file = frame.f_code.co_filename
    return not (is_ours(file) or file.startswith(tuple(_exclude_paths)))


class SourceInfo(Struct, frozen=True):
    """Where an equation comes from: the user's line, and the named scopes around it.

    Attributes:
        location: the line, with all its scopes; None where nobody knows.
        within: those of the operation whose program the equation is part of.
    """

    location: Location | None
    within: str = ""
    traceback = None

    @property
    def name_stack(self) -> str:
        """The scopes inside the program, the outermost first, with slashes between them."""
        return scopes_of(self.location).removeprefix(self.within).removeprefix("/")

    def __str__(self) -> str:
        return str(self.location)


def scopes_of(location: Location | None) -> str:
    """The named scopes around a line, the outermost first."""
    return location.scope if location else ""


def current() -> SourceInfo:
    """The user's line."""
    return SourceInfo(user_location())


new_source_info = current


def summarize(source_info: Any, *_: Any, **__: Any) -> str:
    """The line as text."""
    return str(source_info)


@contextlib.contextmanager
def user_context(*_: Any, **__: Any) -> Generator[None]:
    """A block; programs say of its operations where they were called."""
    yield


def reset_name_stack(*_: Any) -> contextlib.AbstractContextManager[None]:
    """A block without named scopes: here they stay."""
    return contextlib.nullcontext()


set_name_stack = extend_name_stack = transform_name_stack = reset_name_stack
