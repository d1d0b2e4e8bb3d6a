"""How a program is laid out over devices when it is compiled."""

from __future__ import annotations

import math

from msgspec import Struct

from phalanx.base.errors import ProgramError
from phalanx.base.recent import memoized
from phalanx.core.blocks import blocks_of
from phalanx.core.layouts import MeshAxes, OpenLayout, Target, trimmed
from phalanx.core.types import ArrayType
from phalanx.spmd.constraint import open_dims, over, stack_partials, without_open_dims
from phalanx.spmd.layout import from_axes, nearest
from phalanx.spmd.memory_kinds import target_of
from phalanx.spmd.named import unreduced_along
from phalanx.spmd.placement import ProgramMesh
from phalanx.spmd.sharding import Devices, Sharding


@memoized(1024)  # most values of a program lie as others do
def in_terms_of_mesh(
    sharding: Sharding, ndim: int, devices: Devices, axes: MeshAxes
) -> OpenLayout | None:
    """``sharding`` in terms of the mesh of ``devices``; None where it is over other ones."""
    sharding = over(sharding, devices)
    if not sharding.is_over(devices):
        return None
    layout = nearest(without_open_dims(sharding).plain, ndim, devices, axes)
    opened = open_dims(sharding)
    return trimmed(tuple([None if d in opened else n for d, n in enumerate(layout)]))


def sums_in_terms_of_mesh(sharding: Sharding, devices: Devices, axes: MeshAxes) -> tuple[str, ...]:
    """The axes of the mesh of ``devices`` over which what lies as ``sharding`` is still to be
    summed up."""
    if not unreduced_along(sharding):
        return ()
    (names,) = in_terms_of_mesh(stack_partials(sharding), 1, devices, axes) or ((),)
    return names or ()


class Plan(Struct, frozen=True):
    """The devices that run a program, the mesh they form, and how its inputs and outputs lie.

    Device ``i`` is partition ``i``: the place ``i``, counted row by row, of the mesh with axes
    ``axes``. A single device has no mesh. ``in_layouts`` says for each input, and ``out_layouts``
    for each output, which axes split which dimension: ``()`` is replicated. What is None, the
    layout or a dimension of it, is left for XLA's partitioner to choose. ``in_sums`` and
    ``out_sums`` say over which axes the sums of inputs and outputs are still to be taken, where
    there are any. Along ``axes_of_types`` types say how values lie: the partitioner cuts
    nothing by them. ``levels`` says over which axes of the mesh those of regions lie, by how many
    there are around them. Where devices are ``independent`` they do not communicate: each runs
    a program of its own on its parts of the inputs. What is written for them is for fewer lanes
    at once after ``halvings``, where it did not fit their memory before, and for devices of
    another ``platform``, where one is given.
    """

    devices: Devices
    axes: MeshAxes = ()
    in_layouts: tuple[OpenLayout | None, ...] = ()
    out_layouts: tuple[OpenLayout | None, ...] = ()
    levels: tuple[MeshAxes, ...] = ()
    in_sums: tuple[tuple[str, ...], ...] = ()
    out_sums: tuple[tuple[str, ...], ...] = ()
    axes_of_types: tuple[str, ...] = ()
    independent: bool = False
    halvings: int = 0
    platform: str | None = None

    @property
    def target(self) -> Target:
        """What the programs of the devices are written for."""
        return target_of(self.devices[0], self.halvings, self.platform)

    @property
    def mesh(self) -> ProgramMesh:
        """The mesh that the devices form, and where in it regions lie."""
        return ProgramMesh(self.devices, self.axes, self.levels)

    def parts(self, layout: OpenLayout | None) -> tuple[int, ...]:
        """Per dimension that may be split, into how many parts ``layout`` cuts it."""
        sizes = dict(self.axes)
        return tuple(math.prod(sizes[name] for name in names or ()) for names in layout or ())

    def padded(self, type: ArrayType, layout: OpenLayout | None) -> ArrayType:
        """The type of an array that ``layout`` cuts, with the padding that makes parts equal."""
        if not any(layout or ()):
            return type
        blocks = blocks_of(type.shape, self.parts(layout))
        return type.update(shape=tuple(b.padded for b in blocks))

    def __post_init__(self) -> None:
        if math.prod(size for _, size in self.axes) != len(self.devices):
            raise ProgramError(
                f"Plan: a mesh of {self.axes} does not hold {len(self.devices)} devices"
            )

    @property
    def in_shardings(self) -> tuple[Sharding | None, ...]:
        """The sharding of each input; None where it is left open."""
        return tuple(map(self._sharding, self.in_layouts))

    @property
    def out_shardings(self) -> tuple[Sharding | None, ...]:
        """The sharding of each output; None where it is left open."""
        return tuple(map(self._sharding, self.out_layouts))

    def _sharding(self, layout: OpenLayout | None) -> Sharding | None:
        if layout is None or None in layout:
            return None
        return from_axes(self.devices, self.axes, layout)  # type: ignore[arg-type]
