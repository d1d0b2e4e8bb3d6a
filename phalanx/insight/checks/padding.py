"""Axes of which devices run more lanes than there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from phalanx.core.axes import is_internal
from phalanx.core.blocks import Blocks, fewest_blocks
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import MappedLanes, Subject
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import Mesh

__all__ = ["wasted_lanes"]

P118 = Code(
    "P118",
    "an axis size that leaves more than a quarter of the device time unused",
    "pmap(f)(x)  # x has 9 rows, and there are 8 devices",
    "Choose a size that is a multiple of the number of devices, or a little less than one, or "
    "give devices= of which it is a multiple.",
)

MOST = 0.25  # of the time of devices


def wasted_lanes(subject: Subject) -> Iterator[Finding]:
    """Axes that do not go up into devices."""
    for lanes in subject.mapped:
        for axis, size in lanes.frame.runs.axes:
            count = _devices(lanes, axis)
            if not 1 < count < size:
                continue
            blocks = Blocks(size, count)
            wasted = blocks.padding / blocks.padded
            if wasted > MOST:
                named = "" if is_internal(axis) else f" of {axis!r}"
                used = fewest_blocks(size, count).count
                yield P118.at(
                    lanes.equation.location or subject.place,
                    f"{size} lanes{named} run on {used} of {count} devices, up to "
                    f"{blocks.length} on each: {wasted:.0%} of the device time is unused",
                )


def _devices(lanes: MappedLanes, axis: Any) -> int:
    """Over how many devices an axis lies."""
    region = lanes.equation.region
    if region is None:
        return 0
    if region.mesh is not None:
        return dict(cast(Mesh, region.mesh).axes).get(str(axis), 0)
    return len(region.devices or backend().local_devices())
