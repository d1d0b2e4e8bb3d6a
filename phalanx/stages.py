"""The stages between a function and its executable: traced, lowered, compiled."""

import sys as _sys
from typing import Any as _Any

from phalanx.api.compiled_collectives import Collective, Collectives
from phalanx.api.stages import ArgInfo, Compiled, Lowered, MemoryStats, Traced
from phalanx.api.transformed import Wrapped
from phalanx.base.boundary import bound as _bound

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
    "Wrapped",
]

_bound(_sys.modules[__name__])
