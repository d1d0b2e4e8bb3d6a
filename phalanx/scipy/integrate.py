"""Integrals of samples."""

from phalanx.numpy.calculus import trapezoid

__all__ = ["trapezoid"]
