"""Integrals of samples."""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.numpy.differences import trapezoid

__all__ = ["trapezoid"]

_bound(_sys.modules[__name__])
