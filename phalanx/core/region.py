"""Regions: programs that run at every position of named axes, and how arrays are cut for them.

A *layout* says for one array which axes cut which of its dimensions. Its words are the same for
the axes of a region, which the user named, and for those of the mesh of a whole program, over
which they lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from phalanx.base.errors import DeviceError
from phalanx.core.blocks import Blocks, fewest_blocks

if TYPE_CHECKING:
    from phalanx.core.program import Program

Axes = tuple[tuple[Any, int], ...]  # ((name, size), ...), outermost first
MeshAxes = tuple[tuple[str, int], ...]  # the same for the axes of a mesh
Layout = tuple[tuple[Any, ...], ...]  # per dimension, the axes that cut it, major first
OpenLayout = tuple[tuple[Any, ...] | None, ...]  # None: what cuts the dimension is left open


@dataclass(frozen=True, slots=True)
class Cut:
    """How ``axis`` is dealt out: in ``blocks``, one to each position of the axes ``mesh``."""

    axis: Any
    blocks: Blocks
    mesh: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """What one device runs of a region: ``program`` on its parts of the operands.

    The program communicates with other devices over ``names``, one for each axis of the region.
    """

    program: Program
    names: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A program that runs at every position of ``axes``.

    Attributes:
        program: what runs at each position.
        axes: ((name, size), ...), outermost first.
        in_layouts: for each operand, which of the axes cut which dimension.
        out_layouts: the same for each result.
        devices: those to run on, the positions row by row; None: whatever devices there are.
        shared: whether the positions are lanes, those of one axis, of which a device may have
            several: how many is for placement to say. Otherwise each has a device of its own.
        block: what one device runs, by the blocks in which each axis is dealt out.
    """

    program: Program
    axes: Axes
    in_layouts: tuple[Layout, ...]
    out_layouts: tuple[Layout, ...]
    devices: tuple[Any, ...] | None
    shared: bool
    block: Callable[[tuple[Blocks, ...]], Block]

    def counts(self, room: int) -> tuple[int, ...]:
        """Over how many of ``room`` devices each axis lies.

        Raises:
            DeviceError: every position needs a device of its own, and there are too few.
        """
        if self.shared:
            return tuple(fewest_blocks(size, room).count for _, size in self.axes)
        if _positions(self.axes) > room:
            raise DeviceError(
                f"{self.program.name}: every position of the axes {dict(self.axes)} needs a device "
                f"of its own, {_positions(self.axes)} in all, but there are {room}"
            )
        return tuple(size for _, size in self.axes)

    def cuts(self, level: MeshAxes) -> tuple[Cut, ...]:
        """How the axes are dealt out over all of the mesh axes ``level``.

        Raises:
            DeviceError: every position needs a device of its own, and the mesh has another shape.
        """
        groups = [level] if self.shared else self._groups(level)
        return tuple(
            Cut(name, Blocks(size, _positions(group)), tuple(mesh for mesh, _ in group))
            for (name, size), group in zip(self.axes, groups, strict=True)
        )

    def _groups(self, level: MeshAxes) -> list[MeshAxes]:
        """``level``, a run of mesh axes for each axis, which has as many positions as it."""
        groups: list[MeshAxes] = []
        rest = level
        for _, size in self.axes:
            end = next((e for e in range(len(rest) + 1) if _positions(rest[:e]) >= size), len(rest))
            groups.append(rest[:end])
            rest = rest[end:]
        if rest or [_positions(g) for g in groups] != [size for _, size in self.axes]:
            raise DeviceError(
                f"{self.program.name}: the axes {dict(self.axes)} do not fit the mesh "
                f"{tuple(size for _, size in level)} over which other regions of the program lie"
            )
        return groups


def _positions(axes: Axes) -> int:
    return math.prod(size for _, size in axes)


def over_mesh(layout: Layout, cuts: tuple[Cut, ...]) -> Layout:
    """``layout``, which is in terms of a region's axes, in terms of the mesh axes under them.

    >>> over_mesh(((), ("i",)), (Cut("i", Blocks(6, 4), ("m0", "m1")),))
    ((), ('m0', 'm1'))
    """
    under = {cut.axis: cut.mesh for cut in cuts}
    return tuple(tuple(m for axis in axes for m in under[axis]) for axes in layout)


def along(dim: int | None, axis: Any) -> Layout:
    """The layout of an array whose dimension ``dim`` is cut by ``axis``; None: not cut at all.

    >>> along(1, "i"), along(None, "i")
    (((), ('i',)), ())
    """
    return () if dim is None else (*((),) * dim, (axis,))
