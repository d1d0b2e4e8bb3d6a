"""``shard_map`` without compiling: operation by operation, at all positions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.control.device import in_lanes, joined
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks
from phalanx.core.region import Axes
from phalanx.core.roles import Roles
from phalanx.transforms.batch import batch

Function = Callable[..., Sequence[Any]]
Ends = Callable[[Sequence[Any]], Roles]


def at_every_position(
    function: Function, axes: Axes, values: Sequence[Any], ins: Roles, outs: Ends
) -> list[Any]:
    """The results of a flat ``function`` at all positions of ``axes``, joined.

    ``ins`` say what a position sees of ``values``, and ``outs``, which is given the results of the
    positions, what becomes of them.
    """
    roles: Roles = ()

    def innermost(*blocks: Any) -> Sequence[Any]:
        nonlocal roles
        results = function(*blocks)
        roles = outs(results)
        return results

    def over(axes: Axes, ins: Roles) -> Function:
        """The function on the blocks of positions that differ along ``axes``."""
        if not axes:
            return innermost
        (axis, size), *rest = axes
        inner = over(tuple(rest), tuple([r.without(axis) for r in ins]))
        here = Axis(axis, size, Split(axis, Blocks(size, 1)))

        def run(*values: Any) -> list[Any]:
            lanes = [in_lanes(x, r, here, axes) for x, r in zip(values, ins, strict=True)]
            results = batch(inner, here, lanes, [r.place(axis) for r in ins])
            return [
                joined(y, d, r, here, axes) for y, d, r in zip(*results, roles, strict=True)
            ]

        return run

    return list(over(axes, ins)(*values))
