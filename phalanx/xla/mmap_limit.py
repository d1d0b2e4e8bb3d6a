"""Memory maps: Linux gives a process so many, and every compiled program takes some of them.

On CPU the code of a program lies in maps of its own: three for a small program, a hundred for a
large one. A process that has none left cannot start a thread, and XLA ends it. So where
half of them are taken, caches forget what was not used lately.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path

from phalanx.base.recent import forget_old

_OFTEN = 128  # executables: counting maps takes as long as compiling some
_since_count = 0  # executables since maps were counted


def leave_some(executables: int) -> None:
    """Before so many executables are made, see to it that there are maps for them."""
    global _since_count
    _since_count += executables
    if _since_count >= _OFTEN:
        _since_count = 0
        if maps_in_use() > _most() / 2:
            forget_old()


def maps_in_use() -> int:
    """How many maps this process has, where the system tells."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


@functools.cache
def _most() -> float:
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return math.inf
