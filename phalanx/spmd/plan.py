"""How a program is laid out over devices when it is compiled."""

from __future__ import annotations

import math

from msgspec import Struct

from phalanx.base.errors import ProgramError
from phalanx.base.recent import memoized
from phalanx.core.blocks import blocks_of
from phalanx.core.layouts import MeshAxes, OpenLayout, Target
from phalanx.core.types import ArrayType
from phalanx.spmd.constraint import open_dims, over, stack_partials, without_open_dims
from phalanx.spmd.layout import from_axes, nearest
from phalanx.spmd.memory_kinds import target_of
from phalanx.spmd.named import P, unreduced_along
from phalanx.spmd.placement import ProgramMesh
from phalanx.spmd.sharding import Devices, Sharding


@memoized(1024)  # most values of a program lie as others do
def in_terms_of_mesh(sharding: Sharding, ndim: int, devices: Devices, axes: MeshAxes) -> P | None:
    """``sharding`` in terms of the mesh of ``devices``; None where it is over other ones."""
    sharding = over(sharding, devices)
    if not sharding.is_over(devices):
        return None
    layout = nearest(without_open_dims(sharding).plain, ndim, devices, axes)
    opened = open_dims(sharding)
    spec = P.of(tuple([None if d in opened else n for d, n in enumerate(layout)]))
    if not unreduced_along(sharding):
        return spec
    (names,) = nearest(stack_partials(sharding).plain, 1, devices, axes)
    return spec.update(unreduced={*names})


class Plan(Struct, frozen=True):
    """The devices that run a program, the mesh they form, and how its inputs and outputs lie.

    Device ``i`` is partition ``i``: the place ``i``, counted row by row, of the mesh with axes
    ``axes``. A single device has no mesh. ``in_specs`` has for each input, and ``out_specs`` for
    each output, its spec over that mesh: ``P()`` is replicated. What is None, or unconstrained in
    a spec, is left for XLA's partitioner to choose. Along ``axes_of_types`` types say how values
    lie: the partitioner cuts nothing by them. ``levels`` says over which axes of the mesh those of
    regions lie, by how many there are around them. Where devices are ``independent`` they do not
    communicate: each runs a program of its own on its parts of the inputs. What is written for
    them is for fewer lanes at once after ``halvings``, where it did not fit their memory before,
    and for devices of another ``platform``, where one is given.
    """

    devices: Devices
    axes: MeshAxes = ()
    in_specs: tuple[P | None, ...] = ()
    out_specs: tuple[P | None, ...] = ()
    levels: tuple[MeshAxes, ...] = ()
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

    def parts(self, layout: OpenLayout) -> tuple[int, ...]:
        """Per dimension that may be split, into how many parts ``layout`` cuts it."""
        sizes = dict(self.axes)
        return tuple(math.prod(sizes[name] for name in names or ()) for names in layout)

    def padded(self, type: ArrayType, spec: P | None) -> ArrayType:
        """The type of an array that lies as ``spec``, with the padding that makes parts equal."""
        if not spec:
            return type
        blocks = blocks_of(type.shape, self.parts(spec.open_layout))
        return type.update(shape=tuple(b.padded for b in blocks))

    def __post_init__(self) -> None:
        if math.prod(size for _, size in self.axes) != len(self.devices):
            raise ProgramError(
                f"Plan: a mesh of {self.axes} does not hold {len(self.devices)} devices"
            )

    @property
    def in_shardings(self) -> tuple[Sharding | None, ...]:
        """The sharding of each input; None where it is left open."""
        return tuple(map(self._sharding, self.in_specs))

    @property
    def out_shardings(self) -> tuple[Sharding | None, ...]:
        """The sharding of each output; None where it is left open."""
        return tuple(map(self._sharding, self.out_specs))

    def _sharding(self, spec: P | None) -> Sharding | None:
        if spec is None or P.UNCONSTRAINED in spec:
            return None
        return from_axes(self.devices, self.axes, spec.layout)
