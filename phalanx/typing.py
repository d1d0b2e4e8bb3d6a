"""Types for annotations of functions of arrays."""

from phalanx.numpy.promotion import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]
