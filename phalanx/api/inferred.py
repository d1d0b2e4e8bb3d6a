"""What ``in_specs`` are where none are given: how arguments lie, along axes that are Explicit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from phalanx.api import aot
from phalanx.api.arguments import LeafNames
from phalanx.api.positions import Positions
from phalanx.base.errors import ArgumentError
from phalanx.base.source import user_location
from phalanx.core.layouts import Layout
from phalanx.core.manual import user_axis_name
from phalanx.core.trace import Tracer
from phalanx.spmd.named import NamedSharding, PartitionSpec
from phalanx.spmd.sharding import Sharding


class _Infer:
    """Stands for the specs that arguments tell."""

    def __repr__(self) -> str:
        return "Infer"


Infer: Final = _Infer()


def inferred(
    leaves: Sequence[Any], names: LeafNames, positions: Positions, who: str
) -> list[PartitionSpec]:
    """How ``leaves``, which ``names`` names, are cut along the axes of ``positions``.

    Raises:
        ArgumentError: an axis is not Explicit.
        ValueError: one cannot tell how a leaf lies over the mesh.
    """
    missing = f"{who}: in_specs are not given, at {user_location()}, and"
    advice = "Give in_specs, a PartitionSpec for each argument"
    taken = [user_axis_name(axis) for axis, _ in positions.axes]
    for axis in taken:
        if axis not in positions.mesh.explicit_axes:
            raise ArgumentError(
                f"{missing} arguments tell them only along axes of type Explicit, which {axis!r} "
                f"of {positions.mesh} is not. {advice}"
            )

    def cut_by(layout: Layout, *sums: frozenset[str]) -> PartitionSpec:
        entries = [tuple(axis for axis in cutting if axis in taken) for cutting in layout]
        unreduced, reduced = (axes.intersection(taken) for axes in sums)
        return PartitionSpec.of(tuple(entries)).update(unreduced=unreduced, reduced=reduced)

    def spec(x: Any, name: str) -> PartitionSpec:
        if isinstance(x, Tracer):
            return cut_by(x.aval.layout, x.aval.unreduced, x.aval.reduced)
        sharding = aot.sharding_of(x)
        if sharding is None or (sharding.is_fully_replicated and not _has_sums(sharding)):
            return PartitionSpec()
        if not isinstance(sharding, NamedSharding) or sharding.mesh != positions.mesh:
            raise ValueError(
                f"{missing} {name} lies as {sharding}, which is not told over {positions.mesh}. "
                f"{advice}, or move it with device_put"
            )
        return cut_by(sharding.spec.layout, sharding.spec.unreduced, sharding.spec.reduced)

    return [spec(x, names[i]) for i, x in enumerate(leaves)]


def _has_sums(sharding: Sharding) -> bool:
    """Whether it says of an array that a sum is still to be taken, of it or of its cotangent."""
    return isinstance(sharding, NamedSharding) and sharding.spec.has_sums
