"""Lowering of regions: each device runs the program of its block.

What is done with operands and results follows from the layouts of the region alone, whichever
operation it is of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base.errors import MeshesDiffer
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks, blocks_of
from phalanx.core.builder import Builder, Value
from phalanx.core.layouts import Axes, Layout, over_mesh
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.program import Program
from phalanx.core.region import Region
from phalanx.core.types import ArrayType

I32 = np.dtype(np.int32)


class _Parts(Struct, frozen=True):
    """The parts of an array: per dimension the ``axes`` of devices that cut it, in ``blocks``."""

    axes: tuple[Axes, ...]
    blocks: tuple[Blocks, ...]

    @property
    def whole(self) -> tuple[int, ...]:
        """The shape of all parts together, with padding."""
        return tuple([b.padded for b in self.blocks])


def _parts(shape: tuple[int, ...], layout: Layout, devices: dict[Any, tuple[Any, int]]) -> _Parts:
    """``devices`` names, for each axis of a region, the axis of devices under it, and its size."""
    axes = tuple(tuple(devices[axis] for axis in cutting) for cutting in layout)
    return _Parts(axes, blocks_of(shape, tuple([math.prod(n for _, n in over) for over in axes])))


def lower_region(b: Builder, *xs: Value, region: Region) -> list[Value]:
    """Write ``region``, which takes ``xs``, through the builder.

    It is a manual computation, unless it lies in one that has taken its axes of the mesh.
    Dimensions that do not divide are padded.

    Raises:
        MeshesDiffer: a region outside has taken axes of its mesh.
    """
    cuts, types = b.cuts(region), b.outs
    own = tuple([name for cut in cuts for name in cut.mesh])
    blocks = tuple([cut.blocks for cut in cuts])
    block = region.block(blocks, b.parts_work_within(region), b.target)
    scope = {name: cut.mesh for name, cut in zip(block.names, cuts, strict=True)}

    def run(b: Builder, *parts: Value) -> list[Value]:
        with b.inside(scope):
            return b.inline(block.program, *parts)

    # A reproducible lane on no axis may lie beside lanes or around some that are divided over the
    # devices: the compiler would divide its work, too.
    alone = block.reproducible and region.mesh is None and not b.manual
    if not own and not alone:
        return run(b, *xs)
    taken = [cut.axis for cut in cuts if b.manual.intersection(cut.mesh)]
    if taken and region.mesh is not None:
        raise MeshesDiffer(
            f"{region.program.name}: a function over the axes {[cut.axis for cut in cuts]} of "
            f"{region.mesh} lies inside another one, which has taken the devices of the axes "
            f"{taken}, at {user_location()}; it can take the axes that the other one leaves"
        )
    devices = {
        cut.axis: (name, cut.blocks.count) for cut, name in zip(cuts, block.names, strict=True)
    }
    ins = [_parts(b.type(x).shape, y, devices) for x, y in zip(xs, region.in_layouts, strict=True)]
    outs = [_parts(t.shape, y, devices) for t, y in zip(types, region.out_layouts, strict=True)]
    wholes = [b.padded(x, parts.whole) for x, parts in zip(xs, ins, strict=True)]
    if taken:
        with b.inside(scope):
            results = _nested(b, wholes, block.program, ins, outs)
    else:
        results = b.manual_computation(
            wholes,
            [over_mesh(layout, cuts) for layout in region.in_layouts],
            [over_mesh(layout, cuts) for layout in region.out_layouts],
            [t.update(shape=parts.whole) for t, parts in zip(types, outs, strict=True)],
            run,
            None if region.mesh is None else own,
            (
                [_sum(t, y) for t, y in zip(b.ins, region.in_layouts, strict=True)],
                [_sum(t, y) for t, y in zip(types, region.out_layouts, strict=True)],
            ),
        )
    return [b.unpadded(y, t.shape) for y, t in zip(results, types, strict=True)]


def _sum(type: ArrayType, layout: Layout) -> MeshSpec | None:
    """How an operand or a result of ``type`` lies that a region cuts by ``layout``; None unless
    it is a sum that is still to be taken. XLA has to be told all of that."""
    spec = type.spec
    if spec is None or not type.unreduced:
        return None
    own = {axis for axes in layout for axis in axes}
    full_layout = (*layout, *[()] * (type.ndim - len(layout)))
    left = [[a for a in axes if a not in own] for axes in spec.layout]
    return spec.with_layout([(*mine, *rest) for mine, rest in zip(full_layout, left, strict=True)])


def _nested(
    b: Builder,
    wholes: Sequence[Value],
    program: Program,
    ins: Sequence[_Parts],
    outs: Sequence[_Parts],
) -> list[Value]:
    """A region inside another: each device takes its parts, and all gather those of the results."""
    mine = [_part(b, x, parts) for x, parts in zip(wholes, ins, strict=True)]
    results = b.inline(program, *mine)
    return [_gathered(b, y, parts) for y, parts in zip(results, outs, strict=True)]


def _part(b: Builder, x: Value, parts: _Parts) -> Value:
    """The part of ``x`` that this device works on."""
    if not any(parts.axes):
        return x
    starts = [b.constant(0, I32)] * len(parts.blocks)
    for dim, axes in enumerate(parts.axes):
        if axes:
            length = b.constant(parts.blocks[dim].length, I32)
            index = b.axis_index(*[axis for axis, _ in axes])
            starts[dim] = b.multiply(index, length)
    return b.dynamic_slice(x, starts, tuple([block.length for block in parts.blocks]))


def _gathered(b: Builder, x: Value, parts: _Parts) -> Value:
    """The whole array; ``x`` is the part that every device has."""
    for dim, axes in enumerate(parts.axes):
        if axes:
            groups = b.replica_groups(tuple([axis for axis, _ in axes]), None)
            shape = b.type(x).shape
            padded_shape = (*shape[:dim], parts.blocks[dim].padded, *shape[dim + 1 :])
            x = b.all_gather(x, dim, groups, padded_shape)
    return x
