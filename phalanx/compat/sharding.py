"""What ``jax.sharding`` has besides."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from phalanx.api.meshes import set_mesh
from phalanx.sharding import Sharding
from phalanx.spmd.mesh import Mesh


def use_abstract_mesh(mesh: Any) -> AbstractContextManager[Any]:
    """A block in which ``mesh`` is the current one, where it has devices."""
    return set_mesh(mesh) if isinstance(mesh, Mesh) else nullcontext(mesh)


# private names that released libraries read: the devices in order, and those of this process
Sharding._device_assignment = property(lambda s: tuple(s.device_list))  # type: ignore[attr-defined]
Sharding._addressable_device_assignment = property(lambda s: tuple(s.local_devices))  # type: ignore[attr-defined]
