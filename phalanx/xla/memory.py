"""How much memory devices have, and how much of it is free."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phalanx.xla.jaxlib_versions import is_described

_OF_THE_HOST = Path("/proc/meminfo")
_LIMITS = (  # of a container, by the two versions of control groups
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)  # fmt: skip


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
    return _meminfo("MemAvailable", math.inf)


@functools.cache
def of_the_host() -> float:
    """How many bytes this process can ever have; infinity: nobody knows.

    Linux promises more, and ends a process that uses it.
    """
    limits = [path.read_text().strip() for path in _LIMITS if path.exists()]
    most = min([math.inf, *[int(n) for n in limits if n.isdigit()]])
    return min(most, _meminfo("MemTotal", math.inf) + _meminfo("SwapTotal", 0))


def _meminfo(name: str, otherwise: float) -> float:
    """What the system says, in bytes."""
    if not _OF_THE_HOST.exists():
        return otherwise
    found = re.search(rf"{name}:\s*(\d+) kB", _OF_THE_HOST.read_text())
    return int(found[1]) * 1024 if found else otherwise
