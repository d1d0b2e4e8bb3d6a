"""Grids of devices, in the place where they used to be."""

import sys

from phalanx.api.meshes import create_device_mesh, create_hybrid_device_mesh
from phalanx.base.boundary import bound

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]

bound(sys.modules[__name__])
