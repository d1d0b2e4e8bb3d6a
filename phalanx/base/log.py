"""The log of the library, ``logging.getLogger("phalanx")``, imported with the first line of it."""

import importlib
from typing import Any


def warn(text: str, *values: object) -> None:
    """Log ``text % values`` as a warning, of the line that calls."""
    _logger("phalanx").warning(text, *values, stacklevel=2)


def inform(line: str) -> None:
    """Log what a program says of itself, as ``phalanx.debug``."""
    _logger("phalanx.debug").info(line)


def _logger(name: str) -> Any:
    return importlib.import_module("logging").getLogger(name)  # slow, and most write nothing
