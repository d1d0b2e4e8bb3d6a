"""Rotations of space."""

from phalanx.base.lazily import later as _later

_later(__name__)
