"""How a program is laid out over devices when it is compiled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.base.errors import ProgramError
from phalanx.core.blocks import blocks_of
from phalanx.core.types import ArrayType
from phalanx.spmd.layout import Layout, MeshAxes, from_axes
from phalanx.spmd.sharding import Devices, Sharding


@dataclass(frozen=True, slots=True)
class Plan:
    """The devices that run a program, the mesh they form, and how its inputs and outputs lie.

    Device ``i`` is partition ``i``: the place ``i``, counted row by row, of the mesh with axes
    ``axes``. A single device has no mesh. ``in_dims`` says for each input, and ``out_dims`` for
    each output, which axes split which dimension: ``()`` is replicated. An output for which it
    says None lies as XLA's partitioner chooses. ``levels`` says over which axes of the mesh
    the mapped axes lie, by their depth of nesting. Where devices are ``apart``, none needs
    anything of another: each runs a program of its own on its parts of the inputs.
    """

    devices: Devices
    axes: MeshAxes = ()
    in_dims: tuple[Layout, ...] = ()
    out_dims: tuple[Layout | None, ...] = ()
    levels: tuple[tuple[str, ...], ...] = ()
    apart: bool = False

    def parts(self, dims: Sequence[Sequence[str]] | None) -> tuple[int, ...]:
        """Per dimension that may be split, into how many parts ``dims`` cut it."""
        sizes = dict(self.axes)
        return tuple(math.prod(sizes[name] for name in names) for names in dims or ())

    def padded(self, type: ArrayType, dims: Layout | None) -> ArrayType:
        """The type of an array that ``dims`` cut, with the padding that makes all parts equal."""
        blocks = blocks_of(type.shape, self.parts(dims))
        return type.update(shape=tuple(b.padded for b in blocks))

    def __post_init__(self) -> None:
        if math.prod(size for _, size in self.axes) != len(self.devices):
            raise ProgramError(
                f"Plan: a mesh of {self.axes} does not hold {len(self.devices)} devices"
            )

    @property
    def in_shardings(self) -> tuple[Sharding, ...]:
        """The sharding of each input."""
        return tuple(from_axes(self.devices, self.axes, dims) for dims in self.in_dims)

    @property
    def out_shardings(self) -> tuple[Sharding | None, ...]:
        """The sharding of each output; None where it is left open."""
        return tuple(
            None if dims is None else from_axes(self.devices, self.axes, dims)
            for dims in self.out_dims
        )
