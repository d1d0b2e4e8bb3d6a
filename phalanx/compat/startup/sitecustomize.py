"""Read by Python when it starts, in processes that are started where jax is served.

Nothing of Phalanx is imported before somebody asks for jax. Another ``sitecustomize`` on the path
is read as it would be without this one.
"""

import contextlib
import importlib
import os
import sys


class _UntilAskedFor:
    """Serves jax from the first import on."""

    def find_spec(self, name, path=None, target=None):
        finder = _finder() if name.partition(".")[0] == "jax" else None
        return finder and finder.find_spec(name, path, target)

    def find_distributions(self, context=None):
        finder = _finder() if context is not None and context.name == "jax" else None
        return finder.find_distributions(context) if finder else ()


def _finder():
    if _waiting in sys.meta_path:
        sys.meta_path.remove(_waiting)
    try:
        serving = importlib.import_module("phalanx.compat.serving")
    except ImportError:  # another Python, which has no Phalanx
        return None
    serving.install()
    return serving.FINDER


_waiting = _UntilAskedFor()
if __name__ == "sitecustomize":
    if os.environ.get("PHALANX_AS_JAX") == "1":
        sys.meta_path.insert(0, _waiting)
    sys.path[:] = [place for place in sys.path if place != os.path.dirname(__file__)]
    _this = sys.modules.pop("sitecustomize")
    with contextlib.suppress(ModuleNotFoundError):
        import sitecustomize  # noqa: F401
    sys.modules.setdefault("sitecustomize", _this)
