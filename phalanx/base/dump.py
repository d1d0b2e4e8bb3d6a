"""Texts of what becomes of programs on their way to the devices: the option ``dump_ir_to``."""

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

from phalanx.base.config import settings
from phalanx.base.errors import ConfigError

_numbers = itertools.count()


def dump(name: str, stage: str, text: Callable[[], str]) -> None:
    """Write the ``text`` of what is called ``name`` at a ``stage``, if texts are asked for.

    Files are numbered in the order in which they are written; names begin with that of the process.

    Raises:
        ConfigError: the directory cannot be made or written to.
    """
    folder = settings().dump_ir_to
    if folder is None:
        return
    safe = re.sub(r"\W+", "_", name)[:80]
    file = f"{os.getpid()}-{next(_numbers):04}-{safe}-{stage}.txt"
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / file).write_text(text(), "utf-8")
    except OSError as e:
        raise ConfigError(f"dump_ir_to: no texts can be written to {folder!r}: {e}") from None
