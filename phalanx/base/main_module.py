"""What Python runs as the main module: a file, or ``__main__.py`` in a folder or a zip file."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType
from typing import Any, cast

from msgspec import Struct


class MainModule(Struct, frozen=True):
    """A program that was found.

    Attributes:
        place: what Python puts first on its path to run it.
        code: makes its code; the program may be wrong.
        names: what the module has besides its own names, such as ``__file__``.
    """

    place: str
    code: Callable[[], CodeType | None]
    names: dict[str, Any]


def main_module(script: str) -> MainModule | None:
    """The program ``script``, which keeps its place after a chdir; None if there is none."""
    name = os.path.join(os.getcwd(), script)
    inside = PathFinder.find_spec("__main__", [name])  # of a folder or a zip file
    if inside is not None:
        loader = cast("InspectLoader", inside.loader)
        attributes: dict[str, Any] = {
            "__spec__": inside,
            "__loader__": loader,
            "__package__": inside.parent,
            "__file__": inside.origin,
        }
        return MainModule(name, functools.partial(loader.get_code, "__main__"), attributes)
    file = Path(name)
    if not file.is_file():
        return None

    def code() -> CodeType:
        return compiled(file.read_bytes(), name)

    return MainModule(str(file.resolve().parent), code, {"__file__": name})


def is_starting(file: str) -> bool:
    """Whether code of this file is what starts a program; tracebacks of Python leave that out."""
    return file in (__file__, "<frozen runpy>")


def compiled(source: str | bytes, name: str) -> CodeType:
    """The code of a program, without what this module imports from the future.

    Args:
        source: its text.
        name: where it is, for tracebacks.
    """
    return compile(source, name, "exec", dont_inherit=True)
