"""Types for annotations of functions of arrays."""

from phalanx.base.lazily import later as _later
from phalanx.core.types import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]

_later(__name__)
