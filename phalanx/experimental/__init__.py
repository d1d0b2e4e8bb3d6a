"""Names that other libraries of this kind keep in a place of this name."""

from phalanx.api.callbacks import io_callback
from phalanx.api.contexts import disable_x64, enable_x64
from phalanx.experimental import maps, mesh_utils, pjit, shard_map

__all__ = [
    "disable_x64",
    "enable_x64",
    "io_callback",
    "maps",
    "mesh_utils",
    "pjit",
    "shard_map",
]
