"""What is said to be the same on several devices, and is not.

Out_specs of a ``shard_map`` with ``check_vma=False`` may say so of values that each device has for
itself, and arrays can be made of parts that differ. Then a result depends on whose value is taken,
and no operation is at fault.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base.extended import is_key
from phalanx.base.source import Location
from phalanx.core.layouts import Axes
from phalanx.core.manual import user_axis_name
from phalanx.core.program import Equation
from phalanx.insight.verification.collectives import coordinates
from phalanx.insight.verification.reference import Shared, host_value
from phalanx.primitives import random_unwrap
from phalanx.run.array import DeviceArray
from phalanx.transforms.replication import culprits

__all__ = ["Promise", "copies", "promise"]


class Promise(Struct, frozen=True):
    """A result of lanes that is not the same where it is said to be.

    Attributes:
        lanes: the operation that runs them.
        number: which of its results it is.
        axes: along which it differs, as the user names them.
        location: of what brings the difference in.
    """

    lanes: Equation
    number: int
    axes: tuple[str, ...]
    location: Location | None


def promise(shared: Shared) -> Promise:
    """What is wrong about values that differ."""
    e = shared.lanes
    frame = e.frame
    assert frame is not None
    along = _along(shared, frame.runs.axes)
    body = frame.programs[0]
    inputs = [role.axes | role.unreduced for role in frame.ins]
    found = culprits(body, inputs, body.outputs[shared.number], along[0])
    place = next((e.location for e in found if e.location), e.location)
    return Promise(e, shared.number, tuple([str(user_axis_name(a)) for a in along]), place)


def _along(shared: Shared, axes: Axes) -> list[Any]:
    """The axes along which some values differ whose positions are otherwise the same."""
    places = coordinates(axes)
    at = {places[p]: x for p, x in zip(shared.positions, shared.values, strict=True)}
    found: list[Any] = []
    for k, (axis, _) in enumerate(axes):
        firsts = [(x, at.get((*p[:k], 0, *p[k + 1 :]))) for p, x in at.items()]
        if any([y is not None and not np.array_equal(x, y) for x, y in firsts]):
            found.append(axis)
    return found


def copies(x: Any) -> list[tuple[Any, np.ndarray]]:
    """What devices have of an array each part of which lies on several: the first copies, and
    those of single devices that are different, with the device."""
    first = host_value(x)
    if not isinstance(x, DeviceArray) or x.sharding.copies == 1:
        return [(None, first)]
    if is_key(x.dtype):
        x = random_unwrap(x)
    found: list[tuple[Any, np.ndarray]] = [(None, first)]
    for shard in x.addressable_shards:
        own = host_value(shard.data)
        if shard.replica_id and not np.array_equal(own, first[shard.index]):
            other = first.copy()
            other[shard.index] = own
            found.append((shard.device, other))
    return found
