"""How arrays lie over devices: meshes and shardings."""

from phalanx.api.meshes import get_abstract_mesh, get_mesh, set_mesh
from phalanx.lax.layout import reshard
from phalanx.spmd.mesh import AbstractMesh, AxisType, Mesh
from phalanx.spmd.named import NamedSharding, PartitionSpec, PmapSharding
from phalanx.spmd.sharding import Sharding, SingleDeviceSharding

__all__ = [
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "PmapSharding",
    "Sharding",
    "SingleDeviceSharding",
    "get_abstract_mesh",
    "get_mesh",
    "reshard",
    "set_mesh",
]
