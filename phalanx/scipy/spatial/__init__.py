"""Rotations of space."""

from phalanx.base.lazily import later as _later
from phalanx.scipy.spatial import transform

__all__ = ["transform"]

__getattr__, __dir__ = _later(__name__)
