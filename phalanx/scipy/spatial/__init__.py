"""Rotations of space."""

from phalanx.scipy.spatial import transform

__all__ = ["transform"]
