"""What ``jax.sharding`` has besides."""

from __future__ import annotations

from phalanx.sharding import Sharding

# private names that released libraries read: the devices in order, and those of this process
Sharding._device_assignment = property(lambda s: tuple(s.device_list))  # type: ignore[attr-defined]
Sharding._addressable_device_assignment = property(lambda s: tuple(s.local_devices))  # type: ignore[attr-defined]
