"""The stages between a function and its executable: traced, lowered, compiled."""

from phalanx.api.stages import ArgInfo, Compiled, Lowered, MemoryStats, Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "MemoryStats", "Traced"]
