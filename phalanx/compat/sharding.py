"""What ``jax.sharding`` has besides."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from phalanx.api.meshes import set_mesh
from phalanx.spmd.mesh import Mesh


def use_abstract_mesh(mesh: Any) -> AbstractContextManager[Any]:
    """A block in which ``mesh`` is the current one, where it has devices."""
    return set_mesh(mesh) if isinstance(mesh, Mesh) else nullcontext(mesh)
