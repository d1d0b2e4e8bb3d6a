"""How arrays lie over devices: meshes and shardings."""

from phalanx.api.meshes import get_mesh, set_mesh
from phalanx.api.positions import get_abstract_mesh
from phalanx.base.lazily import later as _later
from phalanx.lax.axis_types import auto_axes, explicit_axes
from phalanx.lax.layout import reshard
from phalanx.spmd.mesh import AbstractMesh, AxisType, Mesh
from phalanx.spmd.named import NamedSharding, PartitionSpec, PmapSharding
from phalanx.spmd.sharding import Sharding, SingleDeviceSharding
from phalanx.spmd.sharding_spec import (
    Chunked,
    NoSharding,
    Replicated,
    ShardedAxis,
    ShardingSpec,
)

make_single_device_sharding = SingleDeviceSharding
use_mesh = set_mesh

_REFUSED = {
    "GSPMDSharding": "name the axes of a mesh instead, NamedSharding(mesh, spec)",
    "PositionalSharding": "name the axes of a mesh instead, NamedSharding(mesh, spec)",
    "AbstractDevice": "a program is laid out over devices that there are; an AbstractMesh tells "
    "a grid without them",
    "ManualAxisType": "which values vary is found out by shard_map(check_vma=True) itself",
    "UnreducedKind": "no array holds sums that are still to be made; psum makes them",
    "no_collectives": "jit(f).lower(x).compile().collectives() tells what devices exchange",
    "use_abstract_mesh": "set a mesh of devices, set_mesh(mesh)",
}


_later(__name__, refused=_REFUSED)


__all__ = [
    "AbstractMesh",
    "AxisType",
    "Chunked",
    "Mesh",
    "NamedSharding",
    "NoSharding",
    "PartitionSpec",
    "PmapSharding",
    "Replicated",
    "ShardedAxis",
    "Sharding",
    "ShardingSpec",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_mesh",
]
