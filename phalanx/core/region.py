"""Regions: programs that run at every position of named axes, and how arrays are cut for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from phalanx.core.blocks import Blocks
from phalanx.core.layouts import Axes, Layout, Target
from phalanx.core.mesh_spec import Grid
from phalanx.core.program import Program


class ChunkedLanes(Struct, frozen=True):
    """A part of a program that runs ``at_once`` lanes of ``axis`` at a time.

    ``until`` names the collectives at its end that take in lanes, and the user's lines.
    ``reproducible``: what it gives is to the bit the same on any number of devices.
    """

    axis: Any
    at_once: int
    until: tuple[str, ...]
    reproducible: bool = False

    def __str__(self) -> str:
        end = f", up to {', '.join(self.until)}" if self.until else ""
        return f"{self.at_once} at a time{end}{', reproducible' if self.reproducible else ''}"


class Block(Struct, frozen=True):
    """What one device runs of a region: ``program``, on the device's parts of the operands.

    ``names`` are the axes over which it communicates with other devices, one for each axis of the
    region. ``chunked`` lists the parts of it that do not run all lanes of the device together.
    ``reproducible``: what it gives is to the bit the same on any number of devices.
    """

    program: Program
    names: tuple[Any, ...]
    chunked: tuple[ChunkedLanes, ...]
    reproducible: bool = False


class Region(Struct, frozen=True):
    """A program that runs at every position of ``axes``.

    Attributes:
        program: what runs at each position.
        axes: ((name, size), ...), outermost first: some of those of ``mesh``, if there is one.
        in_layouts: for each operand, which of the axes cut which dimension.
        out_layouts: the same for each result.
        devices: those over which the axes are dealt out; None: whatever devices there are.
        mesh: the grid over which the axes are dealt out, each over its own positions. Axes that
            it has besides are not the region's: along them the compiler decides.
        shared: whether the positions are lanes, of which a device may have several.
        lane_blocks: how many lanes each of the devices has, where that was decided elsewhere.
        block: what one device runs, by the blocks in which each axis is dealt out, whether the
            compiler parts its work along further axes, and what device it is.
    """

    program: Program
    axes: Axes
    in_layouts: tuple[Layout, ...]
    out_layouts: tuple[Layout, ...]
    devices: tuple[Any, ...] | None
    mesh: Grid | None
    shared: bool
    lane_blocks: Blocks | None
    block: Callable[[tuple[Blocks, ...], bool, Target], Block]
