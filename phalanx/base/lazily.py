"""Modules that few programs use, imported when somebody first asks for them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from phalanx.base.errors import no_name


def later(
    package: str, *names: str, refused: Mapping[str, str] | None = None
) -> Callable[[str], ModuleType]:
    """The ``__getattr__`` of ``package``, whose modules ``names`` are attributes of it.

    ``refused`` says of names why they are not there.
    """

    def get(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        public = [other for other in vars(sys.modules[package]) if not other.startswith("_")]
        raise no_name(package, name, [*public, *names], refused or {})

    return get
