"""Modules made of the table when they are imported, and the package metadata to go with them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from phalanx.base.config import read_environment
from phalanx.base.errors import suggest
from phalanx.base.lazily import is_import, missing
from phalanx.compat.borrowed import BORROWED
from phalanx.compat.modules import MODULES, VERSION
from phalanx.compat.private import array as arrays
from phalanx.compat.refused import MODULES_REFUSED, NAMES_REFUSED, not_offered, why_refused
from phalanx.core.types import Array
from phalanx.numpy.methods import belong

_LIST = "docs/bring-your-program.md lists what is offered"
_MISSING = object()
_EVERY = {**MODULES, **dict.fromkeys(MODULES_REFUSED, ())}


def _serve(module: ModuleType) -> None:
    """Give ``module`` what its sources have, and let it look up the rest when it is first used.

    It is a plain module, whose names Python finds fastest, and others pickle by their name.
    """
    served = module.__name__

    def __getattr__(name: str) -> Any:
        value = _found(served, name)
        if value is _MISSING:
            raise missing(served, name, __dir__, _moved(name), _advice(served))
        setattr(module, name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*_names(served), *_below(served)})

    vars(module).update(_at_hand(served), __getattr__=__getattr__, __dir__=__dir__)


def _at_hand(module: str) -> dict[str, Any]:
    """What the sources have without another import, for those who read ``vars`` of the module."""
    found: dict[str, Any] = {}
    for source in reversed(MODULES.get(module, ())):
        own = vars(importlib.import_module(source))
        listed = own.get("__all__", own)
        found |= {n: own[n] for n in listed if n in own and _is_served(module, n, own[n])}
    return found


def _is_served(module: str, name: str, value: Any) -> bool:
    """Whether a public name of a source is one of the module: modules are those of the table."""
    is_module = isinstance(value, ModuleType) or f"{module}.{name}" in _EVERY
    return not name.startswith("_") and not is_module


def _is_standard(name: str) -> bool:
    """Whether the array API standard names it so, of modules: ``__array_api_version__``."""
    return name.startswith("__array_") and name.endswith("__")


def _found(module: str, name: str) -> Any:
    if name == "__all__":
        return _names(module)
    if f"{module}.{name}" in _EVERY:
        return importlib.import_module(f"{module}.{name}")
    if why_refused(module):
        return _MISSING if name.startswith("_") else not_offered(module, name)
    for source in MODULES[module]:
        # what Phalanx keeps to itself is not for others: they may have what is written for them,
        # and what the array API standard names so
        for_others = source.startswith("phalanx.compat.") or _is_standard(name)
        if name.startswith("_") and not for_others:
            continue
        value = getattr(importlib.import_module(source), name, _MISSING)
        if value is not _MISSING and not isinstance(value, ModuleType):
            return value
    if name in BORROWED.get(module, ()):
        return _at(BORROWED[module][name])
    _, refused = NAMES_REFUSED.get(module, ("", ""))
    return not_offered(module, name) if name in refused.split() else _MISSING


def _moved(name: str) -> dict[str, str]:
    """Where a public module of that name is, as of ``jax.linear_util``."""
    found = [each for each in _EVERY if each.endswith(f".{name}") and "._" not in each]
    return {name: f"use {min(found, key=len)}"} if found else {}


def _advice(module: str) -> str:
    """What to use for any name that ``module`` lacks."""
    why, names = NAMES_REFUSED.get(module, ("", ""))
    return f"{why} (see docs/not-offered.md)" if names.endswith("*") else ""


def _at(place: str) -> Any:
    """The module, or what a module has: ``functools:partial``."""
    module, _, name = place.partition(":")
    there = importlib.import_module(module)
    return getattr(there, name) if name else there


def _names(module: str) -> list[str]:
    names: list[str] = []
    for source in map(importlib.import_module, _EVERY.get(module, ())):
        own = vars(source)
        listed = own.get("__all__", dir(source))
        # some are imported when they are used, and then are modules of ours
        late = {m.name for m in iter_modules(getattr(source, "__path__", ())) if m.name not in own}
        modules = {n for n, value in own.items() if isinstance(value, ModuleType)}
        names += [n for n in listed if n[0] != "_" and n not in late | modules]
    return names


def _below(module: str) -> Iterator[str]:
    for name in _EVERY:
        above, _, last = name.rpartition(".")
        if above == module:
            yield last


class ServedFinder(MetaPathFinder, Loader):
    """Finds ``jax`` and all below it in the table, and never a file."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != "jax":
            return None
        if name not in _EVERY and not why_refused(name):
            if not is_import():
                return None
            raise ModuleNotFoundError(
                f"{name} is not among the modules that Phalanx serves as jax. "
                f"{suggest(name, _EVERY)} ({_LIST})",
                name=name,
            )
        return ModuleSpec(name, self, origin="phalanx", is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name, f"{spec.name}, served by Phalanx")

    def exec_module(self, module: ModuleType) -> None:
        """Names are looked up when they are used; here is what the first import of jax means."""
        _serve(module)
        if module.__name__ == "jax":
            read_environment()  # to which programs write before it
            belong(Array, importlib.import_module("jax.numpy"))  # by which arrays are told apart
            arrays.belong()

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        """That of jax, of which others ask the version."""
        if context is not None and context.name == "jax":
            yield _Metadata()


class _Metadata(Distribution):
    """What is written of a package that is installed."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {VERSION}\n"
        return None

    def locate_file(self, path: Any) -> Path:
        return Path(path)


FINDER = ServedFinder()


def is_installed() -> bool:
    """Whether imports of ``jax`` are served."""
    return FINDER in sys.meta_path


def install() -> None:
    """Serve all later imports of ``jax``.

    Raises:
        ImportError: another jax was imported before.
    """
    if is_installed():
        return
    other = sys.modules.get("jax")
    if other is not None:
        raise ImportError(
            f"jax was imported before, from {getattr(other, '__file__', None)}: what holds its "
            "arrays would mix with ours. Call phalanx.as_jax.install() before anything imports "
            "jax, or start with: python -m phalanx.as_jax script.py",
            name="jax",
        )
    sys.meta_path.insert(0, FINDER)
