"""What one device runs of a program in lanes: the program on its block of them.

One axis after the other, the outermost first, the program is vectorized over the lanes that a
device has of it. Where every lane has a device of its own, nothing is left to do.
"""

from __future__ import annotations

from typing import Any

from phalanx.base.source import user_location
from phalanx.control.chunks import Chunks
from phalanx.control.schedule import DeviceLanes, chunks_of, scheduled
from phalanx.core.axes import Axis, Names, Split
from phalanx.core.blocks import Blocks
from phalanx.core.layouts import Axes
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.region import Block, ChunkedLanes
from phalanx.core.roles import Role, Roles
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import broadcast_lanes, move, reshape
from phalanx.primitives.lanes import lanes_at
from phalanx.primitives.shape import merge_dims, split_dim
from phalanx.transforms.batch import batch, place_lanes, with_lanes
from phalanx.transforms.derive import trace_closed
from phalanx.transforms.passes import within_a_device
from phalanx.transforms.replication import Varying, divergences
from phalanx.transforms.stage import evaluate


def block(
    program: Program, axes: Names, blocks: tuple[Blocks, ...], ins: Roles, outs: Roles,
    parted: bool, chunks: Chunks,
) -> Block:  # fmt: skip
    """What each device runs of ``program`` in every lane of ``axes``, divided into ``blocks``.

    It is made once. Where the work of a lane is ``parted`` by the compiler, along further axes,
    this may communicate at any place, in ways that need all devices.
    """
    key = ("block", axes, blocks, ins, outs, parted, chunks)
    return memoize_on(
        program, key, lambda: _block(program, axes, blocks, ins, outs, parted, chunks)
    )


def _block(
    program: Program, axes: Names, blocks: tuple[Blocks, ...], ins: Roles, outs: Roles,
    parted: bool, chunks: Chunks,
) -> Block:  # fmt: skip
    names: list[Any] = []
    chunked: list[ChunkedLanes] = []
    parting = _may_part(program, ins, parted)
    for axis, lanes in zip(axes, blocks, strict=True):
        alone = lanes.size == lanes.count > 1 and not chunks.reproducible
        if alone and axis not in parting:
            names.append(axis)
            continue
        names.append(("the blocks of", axis))
        rest = Split((names[-1],), (lanes.count,), lanes, parted)
        lane_axis = Axis(axis, lanes.length, rest, in_order=chunks.reproducible)
        if parted and chunks.reproducible:
            raise ValueError(
                f"{program.name}: reproducible lanes, at {user_location()}, each of which the "
                "compiler parts along further axes of the mesh, and adds numbers up as it likes; "
                "give all axes of the mesh to the lanes, or leave the mesh out"
            )
        if not parted:  # what the compiler puts in may need all devices, in every lane
            meeting = frozenset(axes[axes.index(axis) :])
            schedule = DeviceLanes(axis, lanes.length, meeting, chunks, chunks.reproducible)
            program = scheduled(program, schedule, tuple([axis in r.axes for r in ins]))
            chunked += chunks_of(program, schedule)
        program = _of_many_lanes(program, lane_axis, ins, outs)
        ins, outs = (tuple([r.without(axis) for r in roles]) for roles in (ins, outs))
    if any(r.layout for r in (*ins, *outs)):
        program = _of_one_lane(program, axes, ins, outs)
    body = within_a_device(program)
    return Block(body, tuple(names), tuple(chunked), chunks.reproducible)


def _may_part(program: Program, ins: Roles, parted: bool) -> Varying:
    """The axes whose lanes communicate, and may decide differently whether they do.

    Those are vectorized even where each lane has a device of its own: the rules for lanes that
    choose differently say what all of them run.
    """
    found = divergences(program, [r.axes for r in ins], anywhere=parted)
    return Varying().union(*(over for _, over in found))


def _of_one_lane(program: Program, axes: Names, ins: Roles, outs: Roles) -> Program:
    """``program`` itself, between reshapes that take off and add dimensions of length one."""
    ones = tuple([(axis, 1) for axis in axes])

    def outside(atom: Atom, role: Role) -> Any:
        if not role.sliced:
            return atom
        inner = atom.type
        return Var(reshape.result_type([inner], {"shape": role.outer(inner, ones).shape}))

    inputs = [outside(v, r) for v, r in zip(program.inputs, ins, strict=True)]
    outputs = [outside(a, r) for a, r in zip(program.outputs, outs, strict=True)]
    before = [_reshaped(x, v) for x, v in zip(inputs, program.inputs, strict=True) if x is not v]
    after = [_reshaped(a, y) for a, y in zip(program.outputs, outputs, strict=True) if y is not a]
    equations = [*before, *program.equations, *after]
    return program.update(inputs=inputs, equations=equations, outputs=outputs)


def _reshaped(atom: Atom, out: Var) -> Equation:
    return Equation(reshape, [atom], {"shape": out.type.shape}, (out,), None)


# ---- many lanes of one axis ---------------------------------------------------------------------


def _of_many_lanes(program: Program, axis: Axis, ins: Roles, outs: Roles) -> Program:
    """``program`` on the lanes of ``axis`` that a device has; the other axes cut as before."""

    def run(*inputs: Any) -> tuple[list[Any], None]:
        values = [in_lanes(x, r, axis) for x, r in zip(inputs, ins, strict=True)]
        own = [axis.name in r.unreduced - r.axes for r in ins]  # a part of a sum, of one lane
        values = [broadcast_lanes(x, 0, 1) if o else x for x, o in zip(values, own, strict=True)]
        dims = [0 if o else r.place(axis.name) for r, o in zip(ins, own, strict=True)]
        results = zip(*batch(lambda *xs: evaluate(program, xs), axis, values, dims), strict=True)
        return [joined_lanes(v, d, r, axis) for (v, d), r in zip(results, outs, strict=True)], None

    types = [_on_device(v.type, r, axis) for v, r in zip(program.inputs, ins, strict=True)]
    return trace_closed(run, types, program.name).program


def _on_device(type: ArrayType, role: Role, axis: Axis) -> ArrayType:
    """The type of the block of an operand on a device, where each lane sees ``type``."""
    place = role.place(axis.name)
    if place is None:
        return type
    if axis.name in role.sliced:
        return with_lanes(type, place, axis)
    shape = type.shape
    return type.update(shape=(*shape[:place], shape[place] * axis.size, *shape[place + 1 :]))


def in_lanes(x: Any, role: Role, axis: Axis, inner: Axes = ()) -> Any:
    """An operand with the lanes of ``axis`` in a dimension of their own, if it has some.

    It holds what all positions of the ``inner`` axes have of it.
    """
    place = role.place(axis.name, inner)
    if place is None or axis.name in role.sliced:
        return x
    before = role.rows_before(axis.name, inner)
    rows = typeof(x).shape[place] // (before * axis.size)
    lanes = move(split_dim(x, place, (before, axis.size, rows)), place + 1, place)
    return merge_dims(lanes, place + 1)


def joined_lanes(value: Any, dim: int | None, role: Role, axis: Axis, inner: Axes = ()) -> Any:
    """The block of a result, from a ``value`` with the lanes of the device in ``dim``."""
    place = role.place(axis.name, inner)
    if place is None:
        return _alike(value, dim)
    lanes = place_lanes(value, dim, place, axis.size)
    if axis.name in role.sliced:
        return lanes
    before = role.rows_before(axis.name, inner)
    rows = typeof(lanes).shape[place + 1] // before
    return merge_dims(move(split_dim(lanes, place + 1, (before, rows)), place, place + 1), place, 3)


def _alike(value: Any, dim: int | None) -> Any:
    """The value that every lane holds: that of lane 0."""
    if dim is None:
        return value
    first = lanes_at(move(value, dim, 0), [0])
    return reshape(first, shape=typeof(first).shape[1:])
