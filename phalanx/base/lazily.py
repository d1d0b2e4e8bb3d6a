"""What few programs use, imported when somebody first asks for it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from phalanx.base.errors import no_name


def later(
    package: str, *modules: str, refused: Mapping[str, str] | None = None, **names: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``, which offers more than it has imported.

    Args:
        package: its name.
        modules: modules of it that are attributes.
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
        own = vars(sys.modules[package]).get("__all__") or listed()
        public = [other for other in own if not other.startswith("_")]
        raise no_name(package, name, public, refused or {})

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *homes})

    return get, listed
