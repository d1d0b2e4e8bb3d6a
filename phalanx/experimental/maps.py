"""``Mesh``, in the place where it used to be."""

from phalanx.spmd.mesh import Mesh

__all__ = ["Mesh"]
