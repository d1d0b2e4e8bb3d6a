"""``pmap`` over processes: each calls it with its own rows, and they agree on the lanes of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base.errors import AxisSizeError, DeviceError
from phalanx.base.source import user_location
from phalanx.core.region import Axes
from phalanx.core.roles import Role
from phalanx.processes.member import Group, joined
from phalanx.run.runtime import backend
from phalanx.run.spanning import Share


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


def refuse_inside(group: Group | None, who: str) -> None:
    """Raise DeviceError for a ``pmap`` over processes within another transformation."""
    if group is not None:
        raise DeviceError(
            f"{who}: it runs over processes {group.key}, of which each knows its own rows alone, "
            f"so no other transformation can be around it, at {user_location()}. Put jit, grad and "
            "vmap inside of it, give it devices=phalanx.local_devices(), or use shard_map"
        )


def agreed(group: Group, sizes: Axes, devices: Sequence[Any] | None, who: str) -> Share:
    """The lanes of all processes, of which this one has as many as ``sizes`` says.

    Raises:
        AxisSizeError: some have none.
    """
    ((axis, size),) = sizes
    every = devices if devices is not None else backend().devices()
    order = sorted(group.processes)
    own = [[d for d in every if d.process_index == process] for process in order]
    rows = group.gather(f"calling {who}", size)
    if not all(rows):
        told = ", ".join(f"process {p} has {n}" for p, n in zip(order, rows, strict=True))
        raise AxisSizeError(
            f"{who}: every process needs a lane of the axis {axis!r}, and {told}, at "
            f"{user_location()}"
        )
    me = order.index(backend().process_index())
    return Share.of(axis, rows, own, me)


def cut_in(role: Role) -> int | None:
    """The dimension in which the axis cuts what has ``role``; None: it does not."""
    return len(role.layout) - 1 if role.layout else None
