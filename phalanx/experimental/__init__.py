"""Names that other libraries of this kind keep in a place of this name."""

import sys as _sys
from typing import TYPE_CHECKING

from phalanx.api.callbacks import io_callback
from phalanx.api.contexts import disable_x64, enable_x64
from phalanx.base.boundary import bound as _bound
from phalanx.base.lazily import later as _later
from phalanx.experimental import maps, mesh_utils, pjit, shard_map

if TYPE_CHECKING:
    from phalanx.experimental import checkpoint as checkpoint
    from phalanx.experimental import custom_partitioning as custom_partitioning
    from phalanx.experimental import jet as jet
    from phalanx.experimental import layout as layout
    from phalanx.experimental import multihost_utils as multihost_utils
    from phalanx.experimental import ode as ode
    from phalanx.experimental import safetensors as safetensors
    from phalanx.experimental import serialize_executable as serialize_executable
    from phalanx.experimental import sparse as sparse
    from phalanx.experimental import topologies as topologies

_later(
    __name__,
    "checkpoint",
    "custom_partitioning",
    "jet",
    "layout",
    "multihost_utils",
    "ode",
    "safetensors",
    "serialize_executable",
    "sparse",
    "topologies",
    refused={"pallas": "write the kernel with numpy and lax, which the compiler fuses"},
)

__all__ = [
    "checkpoint",
    "custom_partitioning",
    "disable_x64",
    "enable_x64",
    "io_callback",
    "jet",
    "layout",
    "maps",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "pjit",
    "safetensors",
    "serialize_executable",
    "shard_map",
    "sparse",
    "topologies",
]

_bound(_sys.modules[__name__], mesh_utils, pjit, shard_map)
