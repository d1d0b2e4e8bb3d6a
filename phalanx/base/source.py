"""Where in the user's program an operation was written.

Taking a location happens once per operation, reading its line hardly ever: a location keeps the
code object and the offset of the instruction, and finds the line when it is asked for.
"""

# Python has no public name for the frame that is executed.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FrameType
from typing import Any

import numpy as np

from phalanx.base.kinds import is_dict, is_sequence


class Location:
    """A place in a source file.

    >>> place = Location.at("/home/ada/train.py", 12, "loss")
    >>> str(place), place.full
    ('train.py:12 (loss)', '/home/ada/train.py:12')
    """

    __slots__ = ("_line", "code", "lasti", "scope")

    def __init__(self, code: CodeType, lasti: int, scope: str = "") -> None:
        self.code = code
        self.lasti = lasti
        self.scope = scope

    @classmethod
    def at(cls, file: str, line: int, function: str, scope: str = "") -> Location:
        """The location of ``line`` in ``file``, for when there is no frame to take it from."""
        code = _nothing.__code__.replace(
            co_filename=file, co_name=function, co_qualname=function, co_firstlineno=line
        )
        return cls(code, 0, scope)

    @property
    def file(self) -> str:
        """The path of the source file."""
        return self.code.co_filename

    @property
    def function(self) -> str:
        """The name of the function, or ``<module>``."""
        return self.code.co_name

    @property
    def line(self) -> int:
        """The line, counted from one."""
        try:
            return self._line
        except AttributeError:
            self._line = _line_of(self.code, self.lasti)
            return self._line

    @property
    def full(self) -> str:
        """``path:line``, which editors and terminals turn into a link."""
        return f"{self.file}:{self.line}"

    @property
    def spot(self) -> tuple[CodeType, int]:
        """The instruction that was executed."""
        return self.code, self.lasti

    def __str__(self) -> str:
        place = f"{file_name(self.file)}:{self.line}"
        return place if self.function == "<module>" else f"{place} ({self.function})"

    def __repr__(self) -> str:
        return f"Location({self.full}, {self.function})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Callable[..., Location], tuple[Any, ...]]:
        return Location.at, self._key()

    def _key(self) -> tuple[str, int, str, str]:
        return self.file, self.line, self.function, self.scope


class CallOfLibrary(Location):
    """A line of the user's that calls an installed library, whose line ``inside`` runs."""

    __slots__ = ("inside",)

    def __init__(self, code: CodeType, lasti: int, inside: Location) -> None:
        super().__init__(code, lasti, inside.scope)
        self.inside = inside

    @property
    def spot(self) -> tuple[CodeType, int]:
        return self.inside.spot


def file_name(file: str) -> str:
    """The name of a file; a cell of a notebook, whose file is called anything, has a number."""
    if "ipykernel" in file or file.startswith("<ipython-input"):
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        cell = shell and shell.compile.format_code_name(file)
        if cell:
            return " ".join(cell)
    return os.path.basename(file)


def _nothing() -> None: ...


def _line_of(code: CodeType, lasti: int) -> int:
    for start, stop, line in code.co_lines():
        if start <= lasti < stop and line is not None:
            return line
    return code.co_firstlineno


def _directory(module: Any) -> str:
    return os.path.dirname(module.__file__) + os.sep


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_EXAMPLES = _PACKAGE + "examples" + os.sep  # programs such as a user would write
_OURS = (
    _PACKAGE,
    _directory(np),
    str(contextlib.__file__),
    str(functools.__file__),
    "<frozen ",
)


_STANDARD = _directory(os)
_PACKAGES = tuple([os.sep + name + os.sep for name in ("site-packages", "dist-packages")])


class _Known(dict[str, bool]):
    """What ``decide`` says of a file; asked once per file.

    A cell of a notebook is a file, too, so it starts again when there are many.
    """

    limit = 4096

    def __init__(self, decide: Callable[[str], bool]) -> None:
        super().__init__()
        self.decide = decide

    def __missing__(self, file: str) -> bool:
        if len(self) >= self.limit:
            self.clear()
        decision = self[file] = self.decide(file)
        return decision


# whether frames of a file are ours and not the user's
_internal: Any = _Known(lambda file: file.startswith(_OURS) and not file.startswith(_EXAMPLES))
is_internal: Callable[[str], bool] = _internal.__getitem__

# whether a file is one of an installed library, or of Python's
_installed: Any = _Known(
    lambda file: file.startswith(_STANDARD) or any([part in file for part in _PACKAGES])
)
is_installed: Callable[[str], bool] = _installed.__getitem__


def is_ours(file: str) -> bool:
    """Whether ``file`` is one of this package, and no program such as a user would write."""
    return file.startswith(_PACKAGE) and not file.startswith(_EXAMPLES)


_LIBRARY = tuple(
    _PACKAGE + name
    for name in (
        *(f"{package}{os.sep}" for package in ("numpy", "scipy", "nn", "random")),
        *(f"{package}{os.sep}" for package in ("experimental", "example_libraries")),
        "image.py",
        "base" + os.sep + "boundary.py",
    )
)


def arguments_of_library() -> Iterator[Any]:
    """What the user's code gave to the library of functions, of which one is running.

    It is the arguments of the outermost function of the library, and what lists, tuples and dicts
    among them hold. Where a transformation calls a function of the user's, that is his code, and
    where it calls one of the library, such as a derivative rule, that is the outermost.
    """
    outermost = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _internal[frame.f_code.co_filename]:
        if frame.f_code.co_filename.startswith(_LIBRARY):
            outermost = frame
        frame = frame.f_back
    waiting = _arguments(outermost) if outermost else []
    while waiting:
        x = waiting.pop()
        if is_dict(x):
            waiting.extend(x.values())
        elif is_sequence(x):
            waiting.extend(x)
        else:
            yield x


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return [frame.f_locals[name] for name in code.co_varnames[:count] if name in frame.f_locals]


def user_location() -> Location:
    """The innermost line that is being executed outside this package.

    Frames of ``contextlib``, ``functools`` and NumPy, through which calls pass on
    their way to us, count as ours. Where every frame is ours, the outermost one is returned.
    While an operation is being replayed, it is the line that the operation comes from.
    """
    replayed = _replayed.get()
    if replayed is not None:
        return replayed
    frame: FrameType = sys._getframe(1)
    code = frame.f_code
    while _internal[code.co_filename]:
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
        code = frame.f_code
    if _as_users and _installed[code.co_filename]:
        return _call_of_library(frame)
    return Location(code, frame.f_lasti, scope_name())


_as_users: list[object] = []  # the blocks of lines_of_users that run


@contextmanager
def lines_of_users() -> Generator[None]:
    """Locations taken inside the block are lines of the user's where those of an installed library
    run, if there are any; taking them is slower by the frames between."""
    _as_users.append(None)
    try:
        yield
    finally:
        _as_users.pop()


def _call_of_library(frame: FrameType) -> Location:
    inside = Location(frame.f_code, frame.f_lasti, scope_name())
    outer = frame.f_back
    while outer is not None:
        code = outer.f_code
        if not (_installed[code.co_filename] or _internal[code.co_filename]):
            return CallOfLibrary(code, outer.f_lasti, inside)
        outer = outer.f_back
    return inside


def user_frame() -> FrameType:
    """The innermost frame that is executed outside this package; its variables are the user's."""
    frame: FrameType = sys._getframe(1)
    while _internal[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
    return frame


NotedWarning = tuple[str, type[Warning]]
_noted: ContextVar[list[NotedWarning] | None] = ContextVar("what a function warns of", default=None)


@contextmanager
def noting_warnings() -> Generator[list[NotedWarning]]:
    """A block in which ``warn_user`` only notes, in the list, what is to be said at each call."""
    noted: list[NotedWarning] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of ``message`` at the user's line; as the filters have it by default, once there."""
    noted = _noted.get()
    if noted is not None:
        noted.append((message, category))
        return
    frame = user_frame()
    namespace = frame.f_globals
    registry = namespace.setdefault("__warningregistry__", {})
    name = namespace.get("__name__", "__main__")
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, name, registry
    )


_replayed: ContextVar[Location | None] = ContextVar("the operation replayed", default=None)


class replaying:
    """Locations taken inside the block are those that it is told; None: the line executed.

    What a transformation makes of an operation so comes from where the user wrote that
    operation. The block is given the function to tell it.
    """

    __slots__ = ("token",)

    def __enter__(self) -> Callable[[Location | None], Any]:
        self.token = _replayed.set(None)
        return _replayed.set

    def __exit__(self, *_: object) -> None:
        _replayed.reset(self.token)


class on_one_line:
    """Locations taken inside the block are all that of the line executed when it begins.

    Inside a rule of ours that is the line of the operation, however many others the rule is made
    of; so it is found once.
    """

    __slots__ = ("token",)

    def __enter__(self) -> None:
        self.token = _replayed.set(user_location())

    def __exit__(self, *_: object) -> None:
        _replayed.reset(self.token)


_scopes: ContextVar[str] = ContextVar("named scopes", default="")
scope_name = _scopes.get


@contextmanager
def naming(name: str) -> Generator[None]:
    """Locations taken inside the block lie in the scope ``name``, inside the current one."""
    outer = scope_name()
    token = _scopes.set(f"{outer}/{name}" if outer else name)
    try:
        yield
    finally:
        _scopes.reset(token)


def name_of(fun: Any) -> str:
    """What to call ``fun`` in messages and programs."""
    name, inner = getattr(fun, "__name__", None), getattr(fun, "func", None)  # functools.partial
    if name and isinstance(name, str):
        return name
    return name_of(inner) if inner else type(fun).__name__


def place_of(fun: Any) -> str:
    """The name of ``fun``, and where it is written if it is a function.

    >>> place_of(print), place_of(lambda x: x).partition(",")[0]
    ('print', '<lambda>')
    """
    code = getattr(getattr(fun, "func", fun), "__code__", None)
    where = f", {file_name(code.co_filename)}:{code.co_firstlineno}" if code else ""
    return name_of(fun) + where
