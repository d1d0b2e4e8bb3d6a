"""The current mesh, as programs look for it in ``jax._src.mesh``."""

from __future__ import annotations

from msgspec import Struct

from phalanx.sharding import Mesh, get_mesh

get_concrete_mesh = get_mesh


class _Environment(Struct, frozen=True):
    @property
    def physical_mesh(self) -> Mesh:
        return get_mesh()


class _Resources(Struct, frozen=True):
    env: _Environment


thread_resources = _Resources(_Environment())
