"""What few programs use, imported when somebody first asks for it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from phalanx.base.errors import no_name


def later(
    package: str, *modules: str, refused: Mapping[str, str] | None = None, **names: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``, which offers more than it has imported.

    Args:
        package: its name.
        modules: modules of it that are public.
        refused: why names are not there.
        names: of further modules, which are no attributes, what they have for the package.
    """
    homes = {name: module for module, own in names.items() for name in own}

    def get(name: str) -> Any:
        if name.startswith("__"):  # of Python's own machinery, which asks whether it is there
            raise AttributeError(name)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name in homes:
            value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
            setattr(sys.modules[package], name, value)
            return value
        raise no_name(package, name, listed(), refused or {})

    def listed() -> list[str]:
        there = vars(sys.modules[package])
        own = there.get("__all__") or [
            name
            for name, value in there.items()
            if not name.startswith("_") and not isinstance(value, ModuleType)
        ]
        return sorted({*own, *modules, *homes})

    return get, listed
