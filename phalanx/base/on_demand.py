"""Modules that are imported when something of theirs is first used."""

import importlib
from typing import Any


class OnDemand:
    """Stands for a module at the top of a file that does not import it, and says why.

    Such as: it takes long to import and few need it, it may not be installed, or it imports the
    file itself.
    """

    def __init__(self, module: str, why: str) -> None:
        self._module, self.__doc__ = module, why

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own machinery asks any object for those
            raise AttributeError(name)
        return getattr(importlib.import_module(self._module), name)
