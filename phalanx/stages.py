"""The stages between a function and its executable: traced, lowered, compiled."""

from phalanx.api.communication import Collective, Collectives
from phalanx.api.stages import ArgInfo, Compiled, Lowered, MemoryStats, Traced
from phalanx.base.lazily import later as _later

__all__ = ["ArgInfo", "Collective", "Collectives", "Compiled", "Lowered", "MemoryStats", "Traced"]

_later(__name__)
