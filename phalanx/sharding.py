"""How arrays lie over devices: meshes and shardings."""

from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding, PartitionSpec
from phalanx.spmd.sharding import Sharding, SingleDeviceSharding

__all__ = ["Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding"]
