"""The log of the library, ``logging.getLogger("phalanx")``, imported with the first line of it."""

from phalanx.base.on_demand import OnDemand

logging = OnDemand("logging", "slow, and most write nothing")


def warn(text: str, *values: object) -> None:
    """Log ``text % values`` as a warning, of the line that calls."""
    logging.getLogger("phalanx").warning(text, *values, stacklevel=2)


def inform(line: str) -> None:
    """Log what a program says of itself, as ``phalanx.debug``."""
    logging.getLogger("phalanx.debug").info(line)
