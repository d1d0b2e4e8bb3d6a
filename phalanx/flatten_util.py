"""Trees of arrays as one vector, and back."""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.numpy.flatten import ravel_pytree

__all__ = ["ravel_pytree"]

_bound(_sys.modules[__name__])
