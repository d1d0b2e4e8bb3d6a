"""Trees of arrays as one vector, and back."""

from phalanx.base.lazily import later as _later
from phalanx.numpy.flatten import ravel_pytree

__all__ = ["ravel_pytree"]

_later(__name__)
