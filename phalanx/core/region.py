"""Regions: programs that run at every position of named axes, and how arrays are cut for them.

A *layout* says for one array which axes cut which of its dimensions. Its words are the same for
the axes of a region, which the user named, and for those of the mesh of a whole program, over
which they lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from phalanx.core.blocks import Blocks

if TYPE_CHECKING:
    from phalanx.core.program import Program

Axes = tuple[tuple[Any, int], ...]  # ((name, size), ...), outermost first
MeshAxes = tuple[tuple[str, int], ...]  # the same for the axes of a mesh
Layout = tuple[tuple[Any, ...], ...]  # per dimension, the axes that cut it, major first
OpenLayout = tuple[tuple[Any, ...] | None, ...]  # None: what cuts the dimension is left open


class Grid(Protocol):
    """Devices in a grid whose axes have names: a mesh that the user gave."""

    @property
    def axes(self) -> MeshAxes: ...

    @property
    def devices(self) -> Any:
        """The array of devices."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Cut:
    """How ``axis`` is dealt out: in ``blocks``, one to each position of the axes ``mesh``."""

    axis: Any
    blocks: Blocks
    mesh: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What the program of a device is written for: a device of ``platform``.

    Where a program did not fit its memory, it is written again for fewer lanes at once:
    ``halvings`` times the half.
    """

    platform: str
    halvings: int = 0


@dataclass(frozen=True, slots=True)
class Chunked:
    """A part of a program that runs ``at_once`` lanes of ``axis`` at a time.

    ``until`` names the collectives at its end that take in lanes, and the user's lines.
    """

    axis: Any
    at_once: int
    until: tuple[str, ...]

    def __str__(self) -> str:
        end = f", up to {', '.join(self.until)}" if self.until else ""
        return f"{self.at_once} at a time{end}"


@dataclass(frozen=True, slots=True)
class Block:
    """What one device runs of a region: ``program`` on its parts of the operands.

    The program communicates with other devices over ``names``, one for each axis of the region.
    What does not run all lanes together is ``chunked``.
    """

    program: Program
    names: tuple[Any, ...]
    chunked: tuple[Chunked, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A program that runs at every position of ``axes``.

    Attributes:
        program: what runs at each position.
        axes: ((name, size), ...), outermost first: some of those of ``mesh``, or else one alone.
        in_layouts: for each operand, which of the axes cut which dimension.
        out_layouts: the same for each result.
        devices: those over which the axis is dealt out; None: whatever devices there are.
        mesh: the grid over which the axes are dealt out, each over its own positions. Axes that
            it has besides are not the region's: along them the compiler decides.
        shared: whether the positions are lanes, of which a device may have several.
        dealt: how many lanes each of the devices has, where that was decided elsewhere.
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
    dealt: Blocks | None
    block: Callable[[tuple[Blocks, ...], bool, Target], Block]


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
