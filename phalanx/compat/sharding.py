"""What ``jax.sharding`` has besides."""

from __future__ import annotations

from phalanx.sharding import Sharding
from phalanx.spmd.mesh import AnyMesh as _AnyMesh

# private names that released libraries read: the devices in order, and those of this process; and
# whether types may tell along a mesh how arrays lie
Sharding._device_assignment = property(lambda s: tuple(s.device_list))  # type: ignore[attr-defined]
Sharding._addressable_device_assignment = property(lambda s: tuple(s.local_devices))  # type: ignore[attr-defined]
_AnyMesh._any_axis_explicit = property(lambda m: bool(m.explicit_axes))  # type: ignore[attr-defined]
