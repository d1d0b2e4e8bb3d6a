"""What few programs use, imported when somebody first asks for it."""

# the frame of who looks for a module, or for a name in one
# pyright: reportPrivateUsage=false

from __future__ import annotations

import dis
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, ForwardRef

from msgspec import StructMeta

from phalanx.base.errors import no_name, suggest


def later(
    package: str,
    *modules: str,
    refused: Mapping[str, str] | None = None,
    unlisted: Collection[str] = (),
    **names: Sequence[str],
) -> None:
    """Give ``package``, which offers more than it has imported, ``__getattr__`` and ``__dir__``.

    They are set, not returned, so that type checkers, which take a ``__getattr__`` for any name,
    see the names alone: those in ``__all__``, imported under ``TYPE_CHECKING`` where they are lazy.

    Args:
        package: its name.
        modules: modules of it that are public.
        refused: why names are not there.
        unlisted: names that are there, and that completion does not show.
        names: of further modules, which are no attributes, what they have for the package.
    """
    there = vars(sys.modules[package])
    sources = {name: module for module, own in names.items() for name in own}

    def get(name: str) -> Any:
        if name.startswith("__"):  # of Python's own machinery, which asks whether it is there
            raise AttributeError(name)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name in sources:
            value = getattr(importlib.import_module(f"{package}.{sources[name]}"), name)
            known_by(package, name, value)
            there[name] = value
            return value
        try:
            raise missing(package, name, listed, refused or {})
        except (AttributeError, ImportError) as error:
            error.__traceback__ = None  # so that the last line is the one that asks
            raise

    def listed() -> list[str]:
        own = there.get("__all__") or [
            name
            for name, value in there.items()
            if not name.startswith("_") and not isinstance(value, ModuleType)
        ]
        return sorted({*own, *modules, *sources}.difference(unlisted))

    there.update(__getattr__=get, __dir__=listed)


ROOMS: dict[int, str] = {}  # by id, of what is known by a public place: what module defines it


def known_by(place: str, name: str, value: Any) -> None:
    """Let a function or class of ours be known by the public ``place`` where users find it.

    That is what ``repr``, pickles and tracebacks name then, and not the room that it lies in. A
    package goes before modules in it; else the place that comes first stays. Records are left out:
    their signatures are read from annotations, with the names of their module.
    """
    if not isinstance(value, (FunctionType, type)) or not value.__module__.startswith("phalanx."):
        return
    if isinstance(value, StructMeta) or value.__name__ != name.rpartition(".")[2]:
        return  # or a second name
    placed = id(value) in ROOMS or value.__module__ == "phalanx.errors"  # as all errors are
    if placed and not value.__module__.startswith(f"{place}."):
        return
    room = ROOMS.setdefault(id(value), value.__module__)
    if isinstance(value, FunctionType):
        value.__qualname__ = name
        within = inspect.unwrap(value)  # which others ask for the place in its stead
        if within.__name__ == value.__name__:
            within.__module__, within.__qualname__ = place, name
    elif value.__module__ != place and "__firstlineno__" in vars(value):
        del value.__firstlineno__  # a line of another file
    if isinstance(value, type) and "__annotations__" in vars(value):
        _name_room(value.__annotations__, room)
    value.__module__ = place


def _name_room(annotations: dict[str, Any], room: str) -> None:
    """Let strings among ``annotations`` of a class be read where the class was written."""
    for name, said in annotations.items():
        text = said.__forward_arg__ if isinstance(said, ForwardRef) else said  # of a named tuple
        if isinstance(text, str):
            annotations[name] = ForwardRef(text, module=room, is_class=True)


def missing(
    module: str,
    name: str,
    listed: Callable[[], Iterable[str]],
    refused: Mapping[str, str],
    advice: str = "",
) -> AttributeError | ImportError:
    """What the ``__getattr__`` of ``module`` raises for ``name``: see ``no_name``.

    Where the name is imported from the module, that is an ImportError, as Python puts one of its
    own in place of one of attributes.
    """
    asking = sys._getframe(2)
    looked_for = asking.f_code.co_filename.startswith("<frozen importlib")
    if looked_for or f"{module}.{name}" in sys.modules:
        return AttributeError(name)  # of a module, which Python looks for next, or is importing
    error = no_name(module, name, listed(), refused, advice)
    if asking.f_lasti >= 0 and asking.f_code.co_code[asking.f_lasti] == _IMPORT_FROM:
        return ImportError(*error.args)
    return error


_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


class _Misspelt:
    """The last finder of modules: says which of ours is near one that was not found."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        package = name.rpartition(".")[0]
        if package.partition(".")[0] != "phalanx" or not is_import():
            return
        near = suggest(name.rpartition(".")[2], dir(sys.modules[package]))
        if near:
            error = ModuleNotFoundError(f"No module named {name!r}. {near}", name=name)
            try:
                raise error
            except ModuleNotFoundError:
                error.__traceback__ = None  # so that the last line is the one that imports
                raise


def is_import() -> bool:
    """Whether what asks a finder for a module is an import; others, such as pytest, ask where it
    is. To be called by ``find_spec``."""
    return sys._getframe(3).f_code.co_name == "_find_and_load_unlocked"


sys.meta_path.append(_Misspelt())
