"""How much memory of devices is free."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phalanx.xla.runtime import is_described

_OF_THE_HOST = Path("/proc/meminfo")


def free_memory(devices: Sequence[Any]) -> float:
    """How many bytes are free on each of ``devices``; infinity: nobody knows."""
    if is_described(devices[0]):
        return math.inf
    if devices[0].platform == "cpu":
        return _available() / len(devices)  # which share the memory of the host
    return min([_unused(d.memory_stats()) for d in devices])


def _unused(stats: dict[str, int] | None) -> float:
    if not stats or "bytes_limit" not in stats:
        return math.inf
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)


def _available() -> float:
    if not _OF_THE_HOST.exists():
        return math.inf
    found = re.search(r"MemAvailable:\s*(\d+) kB", _OF_THE_HOST.read_text())
    return int(found[1]) * 1024 if found else math.inf
