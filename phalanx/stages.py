"""The stages between a function and its executable: traced, lowered, compiled."""

from typing import Any as _Any

from phalanx.api.communication import Collective, Collectives
from phalanx.api.stages import ArgInfo, Compiled, Lowered, MemoryStats, Traced
from phalanx.base.lazily import later as _later

CompilerOptions = dict[str, _Any]  # of XLA, by name

__all__ = [
    "ArgInfo",
    "Collective",
    "Collectives",
    "Compiled",
    "CompilerOptions",
    "Lowered",
    "MemoryStats",
    "Traced",
]

_later(__name__)
