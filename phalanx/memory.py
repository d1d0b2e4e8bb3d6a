"""Kinds of memory in which arrays lie."""

from phalanx.spmd.memory import Space

__all__ = ["Space"]
