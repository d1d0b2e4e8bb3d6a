"""Points that belong together."""

from phalanx.scipy.cluster import vq

__all__ = ["vq"]
