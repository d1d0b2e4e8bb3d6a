"""Kinds of memory in which arrays lie."""

from phalanx.base.lazily import later as _later
from phalanx.spmd.memory import Space

__all__ = ["Space"]

_later(__name__)
