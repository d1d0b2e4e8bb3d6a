"""How arrays lie over devices: meshes and shardings."""

import sys as _sys

from phalanx.api.meshes import get_mesh, set_mesh
from phalanx.api.positions import get_abstract_mesh, use_abstract_mesh
from phalanx.base.boundary import bound as _bound
from phalanx.base.lazily import later as _later
from phalanx.core.manual import ManualAxisType
from phalanx.lax.axis_types import auto_axes, explicit_axes
from phalanx.lax.layout import reshard
from phalanx.spmd.mesh import AbstractDevice, AbstractMesh, AxisType, Mesh
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
    "UnreducedKind": "what is unreduced is a sum, P(unreduced={'x'})",
    "no_collectives": "jit(f).lower(x).compile().collectives() tells what devices exchange",
}


_later(__name__, refused=_REFUSED)


__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "Chunked",
    "ManualAxisType",
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
    "use_abstract_mesh",
    "use_mesh",
]

_bound(_sys.modules[__name__])
