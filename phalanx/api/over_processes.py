"""``pmap`` over processes: each calls it with its own rows of the axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from phalanx.api.one_by_one import Ends, Function, Refuse, at_every_position
from phalanx.base.errors import DeviceError
from phalanx.base.source import user_location
from phalanx.control.across import Across
from phalanx.core.axes import Split
from phalanx.core.blocks import UnevenBlocks
from phalanx.core.roles import Roles
from phalanx.core.trace import current, running
from phalanx.ops.basis import move
from phalanx.ops.lanes import lanes_at
from phalanx.ops.shape import slice_dim
from phalanx.processes.joined import group_over, joined_member
from phalanx.run.runtime import backend
from phalanx.run.spanning import Sharing

if TYPE_CHECKING:
    from phalanx.processes.member import Group


def group_of(devices: Sequence[Any] | None, mesh: Any, who: str) -> Group | None:
    """The processes over which a ``pmap`` over those devices runs; None if that is this alone.

    Raises:
        DeviceError: this process is not among them, or a mesh spans processes.
    """
    if joined_member() is None:
        return None
    every = backend().devices() if mesh is None else tuple(mesh.flat)
    group = group_over(every if devices is None else devices, who)
    if group is not None and mesh is not None:
        raise DeviceError(
            f"{who}: its mesh has devices of several processes, at {user_location()}; use "
            "shard_map on arrays over all of them, or leave out mesh="
        )
    return group


def one_by_one(
    function: Function, sharing: Sharing, values: Sequence[Any], ins: Roles, outs: Ends,
    refuse: Refuse,
) -> tuple[list[Any], Roles]:  # fmt: skip
    """``at_every_position`` for the lanes of this process, in all processes together.

    Each has as many lanes as the one that has most of them; what it has fewer is padding.
    """
    dealt, axis, rows = UnevenBlocks.of(sharing.every), sharing.axis, sharing.rows
    processes = ("the processes of", axis)
    rest = Split((processes,), (dealt.count,), dealt)
    each = Sharing(sharing.who, sharing.group, sharing.devices, processes, 1)
    held = np.minimum(np.arange(dealt.length), rows - 1).tolist()

    def padded(x: Any, dim: int | None) -> Any:
        return x if dim is None else move(lanes_at(move(x, dim, 0), held), 0, dim)

    with running(Across(current(), each)):
        given = [padded(x, r.place(axis)) for x, r in zip(values, ins, strict=True)]
        sizes = ((axis, dealt.length),)
        found, roles = at_every_position(function, sizes, given, ins, outs, refuse, rest)
        pairs = zip(found, [r.place(axis) for r in roles], strict=True)
        own = [y if dim is None else slice_dim(y, 0, rows, dim) for y, dim in pairs]
    return own, roles
