"""Types for annotations of functions of arrays."""

from phalanx.base.lazily import later as _later
from phalanx.core.types import ArrayLike, DTypeLike, Shape, ShapeLike

__all__ = ["ArrayLike", "DTypeLike", "Shape", "ShapeLike"]

_later(__name__)
