"""Linear equations whose matrices are known by their products alone."""

from phalanx.base.lazily import later as _later
from phalanx.scipy.sparse import linalg

__all__ = ["linalg"]

_later(__name__)
