"""``pmap`` over processes: each calls it with its own rows of the axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base.errors import DeviceError
from phalanx.base.source import user_location
from phalanx.processes.member import Group, group_over, joined
from phalanx.run.runtime import backend


def group_of(devices: Sequence[Any] | None, mesh: Any, who: str) -> Group | None:
    """The processes over which a ``pmap`` over those devices runs; None if that is this alone.

    Raises:
        DeviceError: this process is not among them, or a mesh spans processes.
    """
    if joined() is None:
        return None
    every = backend().devices() if mesh is None else tuple(mesh.flat)
    group = group_over(every if devices is None else devices, who)
    if group is not None and mesh is not None:
        raise DeviceError(
            f"{who}: its mesh has devices of several processes, at {user_location()}; use "
            "shard_map on arrays over all of them, or leave out mesh="
        )
    return group
