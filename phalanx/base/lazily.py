"""Modules that few programs use, imported when somebody first asks for them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType


def later(package: str, *names: str) -> Callable[[str], ModuleType]:
    """The ``__getattr__`` of ``package``, whose modules ``names`` are attributes of it."""

    def get(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
