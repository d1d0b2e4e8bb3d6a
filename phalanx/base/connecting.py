"""The packages are connected before the first module that computes is there for anybody.

``import phalanx`` imports none, and no package with a stub does: who asks one of them for a name
connects the packages (``phalanx.connections``). Who imports a module itself gets there by the
finder below. Packages with a stub are not held up: Python locks what it imports, and threads that
import several at once would wait for each other.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_CONNECTS = "phalanx.connections"
_BELOW = {"base", "cli", "connections", "processes", "xla"}  # nobody gives these anything


def connect() -> None:
    """Import what connects the packages; who comes second, from another thread, waits for it."""
    with contextlib.suppress(ValueError):  # it is not there any more
        sys.meta_path.remove(_finder)
    try:
        importlib.import_module(_CONNECTS)
    except BaseException:  # such as a package that is missing: the next one finds it missing, too
        connect_first()
        raise


def connect_first() -> None:
    """Let the first import of a module that computes connect the packages before."""
    if _CONNECTS not in sys.modules and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def stub_of(spec: ModuleSpec) -> str | None:
    """The stub beside a package, which computes nothing, and imports what does as it is asked."""
    if spec.submodule_search_locations is None:
        return None
    loader: Any = spec.loader
    try:
        return loader.get_data(f"{spec.origin}i".replace(".pyci", ".pyi")).decode()
    except (AttributeError, OSError):
        return None


class _Finder(MetaPathFinder):
    """Finds what others find, and lets it be loaded when the packages are connected."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != "phalanx" or not rest or rest.partition(".")[0] in _BELOW:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and stub_of(spec) is None:
                    spec.loader = _Connected(spec.loader)
                return spec
        return None


_finder = _Finder()


class _Connected(Loader):
    """Connects the packages, which imports the module, too, or else loads it as another would."""

    def __init__(self, loader: Any) -> None:
        self._loader, self._is_there = loader, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        connect()
        module = sys.modules.get(spec.name)
        self._is_there = module is not None
        return module or self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        if not self._is_there:
            self._loader.exec_module(module)
