"""``pmap`` and ``shard_map`` without compiling: operation by operation, everywhere at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.enclosing import enclosing
from phalanx.control.device import in_lanes, joined_lanes
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks
from phalanx.core.layouts import Axes
from phalanx.core.roles import Role, Roles
from phalanx.core.trace import Tracer
from phalanx.run.array import moved
from phalanx.run.eager import as_array
from phalanx.spmd.named import NamedSharding, P
from phalanx.transforms.batch import batch

Function = Callable[..., Sequence[Any]]
Ends = Callable[[Sequence[Any]], Roles]
Refuse = Callable[[Role, Any], None]


def at_every_position(
    function: Function, axes: Axes, values: Sequence[Any], ins: Roles, outs: Ends,
    refuse: Refuse | None = None,
) -> tuple[list[Any], Roles]:  # fmt: skip
    """The results of a flat ``function`` at all positions of ``axes``, joined, and their roles.

    ``ins`` say what a position sees of ``values``, and ``outs``, which is given the results of the
    positions, what becomes of them. A result that an axis does not cut is that of position 0,
    unless it may differ and there is somebody to ``refuse`` it.
    """
    roles: Roles = ()

    def innermost(*parts: Any) -> Sequence[Any]:
        nonlocal roles
        results = function(*parts)
        roles = outs(results)
        return results

    def over(axes: Axes) -> Function:
        """The function on what is there of positions that differ along ``axes``."""
        if not axes:
            return innermost
        (axis, size), *more = axes
        inner = tuple(more)
        lane_axis = Axis(axis, size, Split((axis,), (1,), Blocks(size, 1)))

        def run(*values: Any) -> list[Any]:
            lanes = [in_lanes(x, r, lane_axis, inner) for x, r in zip(values, ins, strict=True)]
            batched = batch(over(inner), lane_axis, lanes, [r.place(axis, inner) for r in ins])
            results = list(zip(*batched, roles, strict=True))
            for _, dim, role in results:
                if refuse is not None and dim is not None and axis not in role.axes:
                    refuse(role, axis)
            return [joined_lanes(y, d, r, lane_axis, inner) for y, d, r in results]

        return run

    return list(over(axes)(*values)), roles


def spread(values: Sequence[Any], roles: Roles, mesh: Any, kind: type[NamedSharding]) -> list[Any]:
    """``values``, over the devices of ``mesh`` as their roles say.

    Traced ones stay as they are, and so do all in a function that divides the devices already.
    """
    if enclosing():
        return list(values)

    def over_mesh(x: Any, role: Role) -> Any:
        if isinstance(x, Tracer):
            return x
        spec = P.of(tuple([tuple(map(str, cutting)) for cutting in role.layout]))
        spec = spec.update(reduced=set(map(str, role.reduced)))
        return moved(as_array(x), kind(mesh, spec))

    return [over_mesh(x, r) for x, r in zip(values, roles, strict=True)]
