"""``pmap`` over processes: whose rows the arguments are, and over which devices they are mapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from phalanx.api.aot import sharding_of
from phalanx.core.trace import Tracer, carried
from phalanx.processes.joined import group_over, joined_member
from phalanx.run.runtime import backend

if TYPE_CHECKING:
    from phalanx.processes.member import Group


def group_of(devices: Sequence[Any] | None, who: str) -> Group | None:
    """The processes over which a ``pmap`` over those devices runs; None if that is this alone.

    Raises:
        DeviceError: this process is not among them.
    """
    if joined_member() is None:
        return None
    return group_over(backend().devices() if devices is None else devices, who)


def devices_of_all(leaves: Sequence[Any]) -> tuple[Any, ...] | None:
    """The devices of the first of ``leaves`` that is an array over processes; None if none is."""
    if joined_member() is None:
        return None
    shardings = [s for s in map(sharding_of, map(_outermost, leaves)) if s is not None]
    return next((s.device_list for s in shardings if not s.is_fully_addressable), None)


def _outermost(x: Any) -> Any:
    """The array for which ``x`` stands in transformations, if it does for one."""
    while isinstance(x, Tracer):
        x = carried(x)
    return x
