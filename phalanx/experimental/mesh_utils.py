"""Grids of devices, in the place where they used to be."""

from phalanx.api.meshes import create_device_mesh, create_hybrid_device_mesh

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
