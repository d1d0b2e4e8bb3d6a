"""``pmap`` over processes: each calls it with its own rows of the axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base.errors import DeviceError
from phalanx.base.source import user_location
from phalanx.processes.member import Group, joined
from phalanx.run.runtime import backend


def group_of(devices: Sequence[Any] | None, mesh: Any, who: str) -> Group | None:
    """The processes over which a ``pmap`` over those devices runs; None if that is this alone.

    Raises:
        DeviceError: this process is not among them, or a mesh spans processes.
    """
    member = joined()
    if member is None or member.count == 1:
        return None
    every = backend().devices() if mesh is None else tuple(mesh.flat)
    if devices is not None:
        every = tuple(devices)
    processes = frozenset(d.process_index for d in every)
    if processes == {member.process}:
        return None
    if member.process not in processes:
        raise DeviceError(
            f"{who}: no device of this process, {member.process}, is among {list(every)}, at "
            f"{user_location()}"
        )
    if mesh is not None:
        raise DeviceError(
            f"{who}: its mesh has devices of several processes, at {user_location()}; use "
            "shard_map on arrays over all of them, or leave out mesh="
        )
    return member.group_of(processes)
