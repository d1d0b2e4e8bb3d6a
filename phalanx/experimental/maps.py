"""``Mesh``, in the place where it used to be."""

from phalanx.base.lazily import later as _later
from phalanx.spmd.mesh import Mesh

__all__ = ["Mesh"]

_later(__name__)
