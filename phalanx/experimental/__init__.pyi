"""The names of ``phalanx.experimental``, each with the module that has it."""

from phalanx.api.callbacks import io_callback as io_callback
from phalanx.api.contexts import (
    disable_x64 as disable_x64,
    enable_x64 as enable_x64,
)
from phalanx.experimental import (
    checkpoint as checkpoint,
    custom_partitioning as custom_partitioning,
    jet as jet,
    layout as layout,
    maps as maps,
    mesh_utils as mesh_utils,
    multihost_utils as multihost_utils,
    ode as ode,
    pjit as pjit,
    safetensors as safetensors,
    serialize_executable as serialize_executable,
    shard_map as shard_map,
    sparse as sparse,
    topologies as topologies,
)
