"""Trees of arrays as one vector, and back."""

from phalanx.numpy.flatten import ravel_pytree

__all__ = ["ravel_pytree"]
