"""Rotations of space."""

from phalanx.base.lazily import later as _later
from phalanx.scipy.spatial import transform

__all__ = ["transform"]

_later(__name__)
