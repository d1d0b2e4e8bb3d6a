"""Points that belong together."""

from phalanx.base.lazily import later as _later
from phalanx.scipy.cluster import vq

__all__ = ["vq"]

__getattr__, __dir__ = _later(__name__)
