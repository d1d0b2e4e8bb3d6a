"""Read by Python when it starts, in processes that are started where jax is served.

Nothing of Phalanx is imported before somebody asks for jax. Another ``sitecustomize`` on the path
is read as it would be without this one.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

TYPE_CHECKING = False  # typing is not imported in every process that starts
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _UntilAskedFor:
    """Serves jax from the first import on, of it or of Phalanx, whose arrays others send here."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "phalanx":
            return _and_then_serve(name)
        finder = _finder() if name.partition(".")[0] == "jax" else None
        return finder and finder.find_spec(name, path, target)

    def find_distributions(self, context: object = None) -> object:
        finder = _finder() if getattr(context, "name", None) == "jax" else None
        return finder.find_distributions(context) if finder else ()


def _finder():
    sys.meta_path.remove(_waiting)
    try:
        return _serve().FINDER
    except ImportError:  # another Python, which has no Phalanx
        return None


def _serve():
    running = importlib.import_module("phalanx.compat.running")
    running.install()  # all of it, as where this process was started
    return running.serving


def _and_then_serve(name: str) -> ModuleSpec | None:
    """Where the module ``name`` is, after whose import jax is served."""
    sys.meta_path.remove(_waiting)
    spec = importlib.import_module("importlib.util").find_spec(name)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def and_serve(module: ModuleType) -> None:
            execute(module)
            _serve()

        spec.loader.exec_module = and_serve
    return spec


_waiting = _UntilAskedFor()
if __name__ == "sitecustomize":
    if os.environ.get("PHALANX_AS_JAX") == "1":
        sys.meta_path.insert(0, _waiting)
    sys.path[:] = [place for place in sys.path if place != os.path.dirname(__file__)]
    _this = sys.modules.pop("sitecustomize")
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("sitecustomize")
    sys.modules.setdefault("sitecustomize", _this)
