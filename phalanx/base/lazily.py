"""What a package offers, imported when somebody first asks for it."""

# the frame of who looks for a module, or for a name in one
# pyright: reportPrivateUsage=false

from __future__ import annotations

import dis
import importlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from types import ModuleType
from typing import Any

from phalanx.base.connecting import connect, stub_of
from phalanx.base.errors import no_name, suggest
from phalanx.base.on_demand import OnDemand

_boundary = OnDemand("phalanx.base.boundary", "it imports NumPy")


def later(
    package: str, *, refused: Mapping[str, str] | None = None, unlisted: Collection[str] = ()
) -> None:
    """Give ``package`` what its stub declares, each name imported when somebody first asks for it.

    The stub, which lies beside it, is the one list of names: type checkers and editors read it,
    and so do ``__all__``, ``__dir__`` and ``__getattr__`` that are set here. A module without one
    says of names that it lacks which are near, and that is all.

    Args:
        package: its name.
        refused: why names are not there.
        unlisted: names that are there, and that completion does not show.
    """
    there = vars(sys.modules[package])
    sources = _sources.get(package) or _declared(there)

    def get(name: str) -> Any:
        if name in sources:
            connect()
            return there[name] if name in there else _found(package, name, sources[name])
        if name.startswith("__"):  # of Python's own machinery, which asks whether it is there
            raise AttributeError(name)
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
        return sorted({*own}.difference(unlisted))

    there.update(__getattr__=get, __dir__=listed)
    if sources:
        _sources[package] = sources
        # what array libraries ask for, and nobody reads, is not listed
        there["__all__"] = [name for name in sources if not name.startswith("__array")]


def at_hand(package: str) -> None:
    """Put into ``package`` what it declares and others have imported by now."""
    there = vars(sys.modules[package])
    for name, (module, own) in _sources.get(package, {}).items():
        found: Any = sys.modules.get(module)
        if name not in there and hasattr(found, own or "__name__"):
            there[name] = getattr(found, own) if own else found


Source = tuple[str, str]  # of a name: the module that has it, and its name there; "": it is that
_sources: dict[str, Mapping[str, Source]] = {}  # by package
_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$|^(\w+) = (\w+)$", re.MULTILINE)


def _declared(module: Mapping[str, Any]) -> dict[str, Source]:
    """Where the names are that the stub of a module, if there is one, declares."""
    package, stub = module["__name__"], stub_of(module["__spec__"])
    sources: dict[str, Source] = {}
    for source, several, one, alias, meant in _IMPORT.findall(stub or ""):
        for part in filter(None, map(str.strip, (several or one).split(","))):
            own = part.partition(" as ")[0]
            sources[own] = (f"{source}.{own}", "") if source == package else (source, own)
        if alias:
            sources[alias] = sources[meant]
    return sources


def _found(package: str, name: str, source: Source) -> Any:
    """What ``package`` offers as ``name``, made public and kept there."""
    module, own = source
    value: Any = importlib.import_module(module)
    if own:
        value = _boundary.publish(package, name, getattr(value, own))
    return vars(sys.modules[package]).setdefault(name, value)  # that of the thread that was first


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
