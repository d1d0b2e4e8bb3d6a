"""The log of the library, ``logging.getLogger("phalanx")``, imported with the first line of it."""

import importlib


def warn(text: str, *values: object) -> None:
    """Log ``text % values`` as a warning, of the line that calls."""
    log = importlib.import_module("logging").getLogger("phalanx")  # slow, and most write nothing
    log.warning(text, *values, stacklevel=2)
