"""``pmap`` over processes: whose rows the arguments are, and over which devices they are mapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from phalanx.api.aot import sharding_of
from phalanx.base.errors import DeviceError
from phalanx.base.source import user_location
from phalanx.core.trace import Tracer, carried
from phalanx.processes.joined import group_over, joined_member
from phalanx.run.runtime import backend

if TYPE_CHECKING:
    from phalanx.api.arguments import LeafNames
    from phalanx.core.roles import Roles
    from phalanx.processes.group import Group


def group_of(devices: Sequence[Any] | None, who: str) -> Group | None:
    """The processes over which a ``pmap`` over those devices runs; None if that is this alone.

    Raises:
        DeviceError: this process is not among them.
    """
    if joined_member() is None:
        return None
    return group_over(backend().devices() if devices is None else devices, who)


def devices_of_all(
    leaves: Sequence[Any], ins: Roles, names: LeafNames, who: str
) -> tuple[Any, ...] | None:
    """The devices of the first of ``leaves`` that is an array over processes; None if none is.

    Raises:
        DeviceError: such an array is there, but none that is mapped, so nothing tells whether the
            rows of the mapped arguments are all rows, or those of this process.
    """
    spanning = over_processes(leaves)
    if not spanning:
        return None
    mapped = [i for i, role in enumerate(ins) if role.axes]
    if mapped and spanning.keys().isdisjoint(mapped):
        shared, own = names[next(iter(spanning))], names[mapped[0]]
        raise DeviceError(
            f"{who}: {shared}, which is not mapped, is an array over processes, and {own}, which "
            f"is, is of this process alone, at {user_location()}. If each process has rows of its "
            f"own, make an array over processes of them, with make_array_from_process_local_data, "
            f"or gather {shared} (multihost_utils.process_allgather); if {own} is the same whole "
            "array in all of them, give mesh="
        )
    return next(iter(spanning.values()))


def over_processes(leaves: Sequence[Any]) -> dict[int, tuple[Any, ...]]:
    """The devices of those of ``leaves`` that are arrays over processes, by their positions."""
    if joined_member() is None:
        return {}
    shardings = enumerate(map(sharding_of, map(_outermost, leaves)))
    return {i: s.device_list for i, s in shardings if s is not None and not s.is_fully_addressable}


def _outermost(x: Any) -> Any:
    """The array for which ``x`` stands in transformations, if it does for one."""
    while isinstance(x, Tracer):
        x = carried(x)
    return x
