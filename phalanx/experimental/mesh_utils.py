"""``create_device_mesh``, in the place where it used to be."""

from phalanx.api.meshes import create_device_mesh

__all__ = ["create_device_mesh"]
