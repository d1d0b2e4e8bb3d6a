"""Kinds of memory in which arrays lie."""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.spmd.memory_kinds import Space

__all__ = ["Space"]

_bound(_sys.modules[__name__])
