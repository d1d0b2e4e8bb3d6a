"""Points that belong together."""

from phalanx.base.lazily import later as _later
from phalanx.scipy.cluster import vq

__all__ = ["vq"]

_later(__name__)
