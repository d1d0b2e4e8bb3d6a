"""``mapped``: run a program at every position of named axes. It is what ``pmap`` binds.

Roles say what a run sees of the operands and results. Each is ``slices(layout)``, where the
dimensions that are cut are not there (``pmap``), ``blocks(layout)``, where they are shorter, or
``FIXED``, the same in all runs. A layout names, per dimension, the axes that cut it. So, at each
position of a 2 x 4 mesh, a block of rows of ``x`` and all of ``w``:

    mapped(x, w, program=program, axes=(("data", 2), ("model", 4)), devices=None, mesh=mesh,
           ins=(blocks((("data",),)), FIXED), outs=(blocks((("data",), ("model",))),))

``mesh`` names the devices, and has the axes among its own; what it has besides is left to the
compiler. Where there is none, there is one axis, dealt out over ``devices``, or all that there are.
Where processes decided which of ``devices`` has how many lanes of it, ``lane_blocks`` says so, and
whole arrays have rows for the padding, too.

Under every transformation it stays a mapped program: what is linearized, transposed or
vectorized is the body, traced once whatever the number of lanes. Lowered, it is a manual
region over the mesh, in which each device runs the body vectorized over its block of lanes; one
that is all that another runs shares its region.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from phalanx.base.config import settings
from phalanx.base.errors import ShardingTypeError, coded
from phalanx.base.source import user_location
from phalanx.control.chunks import AtOnce, Chunks
from phalanx.control.device import block
from phalanx.control.family import with_subprograms
from phalanx.control.lanes import batch_rule
from phalanx.control.region_lowering import lower_region
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks, UnevenBlocks
from phalanx.core.builder import Builder, Value
from phalanx.core.layouts import Axes, Layout
from phalanx.core.manual import typed, user_axis_name
from phalanx.core.mesh_spec import Grid, MeshSpec, both
from phalanx.core.primitive import OnDevices, Primitive
from phalanx.core.program import Atom, Equation, Frame, Program
from phalanx.core.region import Region
from phalanx.core.roles import Role, Roles
from phalanx.core.runs import Lanes
from phalanx.core.types import ArrayType
from phalanx.primitives.vary import conversion
from phalanx.transforms.batch import Dims

Devices = tuple[Any, ...] | None  # None: whatever there are


def on_whole_arrays(
    program: Program, axes: Axes, ins: Roles, outs: Roles, mesh: Grid | None
) -> Program:
    """The program of one operation, ``mapped``, which runs ``program``."""
    program = _varying_as_cut(program, outs)
    params = {
        "program": program,
        "axes": axes,
        "ins": ins,
        "outs": outs,
        "devices": None,
        "mesh": mesh,
        "at_once": None,
    }
    types = [_outside(r, t, axes, mesh) for r, t in zip(ins, program.input_types, strict=True)]
    return Program.of_one(mapped, types, params, program.name)


def _outside(role: Role, type: ArrayType, axes: Axes, mesh: Grid | None) -> ArrayType:
    """The type of the whole array, where each position sees ``type``."""
    outer = role.outer(type, axes)
    return role.sharded_type(outer, mesh) if role.sums and mesh is not None else outer


def _varying_as_cut(program: Program, outs: Roles) -> Program:
    """``program`` with results whose types vary along the axes that cut them, and are reduced where
    their roles say so.

    The values need not vary; but each position has its own part of the result, which is a whole
    array.
    """
    after: list[Equation] = []
    outputs: list[Atom] = []
    for atom, role in zip(program.outputs, outs, strict=True):
        kind = atom.type
        along = typed(role.axes) - role.sums
        reduced = kind.reduced - along | typed(role.reduced)
        spec = both(kind.spec, MeshSpec.of(None, [()] * kind.ndim, kind.unreduced, reduced))
        equations = conversion(atom, kind.update(varying=kind.varying | along, spec=spec))
        after += equations
        outputs.append(equations[-1].outputs[0] if equations else atom)
    if not after:
        return program
    return program.update(equations=[*program.equations, *after], outputs=outputs)


def _over_mesh_axes(axis: Axis, params: dict[str, Any]) -> Axis:
    """``axis``, dealt out along the mesh axes over which its lanes are to lie.

    These are such along which all positions do the same, so that each can do it for lanes of its
    own. Over which axes they are to lie the user says, or the type of what has lanes.

    Raises:
        ShardingTypeError: positions of an axis over which lanes lie do not do the same.
    """
    program, roles = params["program"], (*params["ins"], *params["outs"])
    taken = {user_axis_name(name): (name, count) for name, count in params["axes"]}
    explicit = [axis_name for axis_name in axis.explicit_axes if axis_name in taken]
    if axis.spec is not None:
        axis = replace(axis, spec=axis.spec.without_axes(map(user_axis_name, dict(params["axes"]))))
    mesh_axes = [axis_name for axis_name in axis.over or () if axis_name in taken] or explicit
    if not mesh_axes or axis.rest:
        return axis
    busy = program.axes.union(*[r.axes for r in roles])
    names, sizes = list[Any](), list[int]()
    for name, count in map(taken.__getitem__, mesh_axes):
        if name not in busy and axis.size % math.prod([*sizes, count]) == 0:
            names.append(name)
            sizes.append(count)
    if names:
        used = set(map(user_axis_name, names))
        left = axis.over and tuple([axis_name for axis_name in axis.over if axis_name not in used])
        split = Split(tuple(names), tuple(sizes), Blocks(axis.size, math.prod(sizes)))
        return replace(axis, size=split.blocks.length, rest=split, over=left)
    if any(r.sliced for r in roles):  # a pmap takes lanes however they lie
        return axis
    if explicit:
        error = ShardingTypeError(
            f"vmap of shard_map({program.name}): {explicit[0]!r} cuts what is mapped over, at "
            f"{user_location()}, and shard_map uses it itself. Lay the lanes otherwise, with "
            "phalanx.reshard(x, P(..))"
        )
        raise coded(error, "axis in use")
    for name, _ in map(taken.__getitem__, mesh_axes):
        if any([name in r.axes for r in roles]) and not settings().disable_vmap_shmap_error:
            error = ShardingTypeError(  # "spmd_axis_name cannot appear in" is the field's
                f"vmap of shard_map({program.name}): spmd_axis_name cannot appear in its specs, at "
                f"{user_location()}: along {user_axis_name(name)!r} these cut arrays already; give "
                "another axis"
            )
            raise coded(error, "lanes in specs")
    return axis


def _batch(axis: Axis, values: Sequence[Any], dims: Dims, /, **params: Any) -> Any:
    return _batch_lanes(_over_mesh_axes(axis, params), values, dims, **params)


def _layout(role: Role) -> Layout:
    """The layout of ``role``, with the names that the mesh has for the axes."""
    return tuple([tuple(map(user_axis_name, cutting)) for cutting in role.layout])


def _region(
    *, program: Program, axes: Axes, ins: Roles, outs: Roles, devices: Devices, mesh: Grid | None,
    at_once: AtOnce, lane_blocks: UnevenBlocks | None = None,
) -> Region:  # fmt: skip
    if mesh is None and lane_blocks is None and not isinstance(at_once, int | str):
        program, axes, ins, outs = _with_inside(program, axes, ins, outs, at_once)
    names = tuple([name for name, _ in axes])
    return Region(
        program,
        tuple([(user_axis_name(name), size) for name, size in axes]),
        tuple(map(_layout, ins)),
        tuple(map(_layout, outs)),
        devices,
        mesh,
        shared=any(r.sliced for r in (*ins, *outs)),
        lane_blocks=lane_blocks,
        block=lambda blocks, parted, target: block(
            program, names, blocks, ins, outs, parted, Chunks(at_once, target)
        ),
    )


def _with_inside(
    program: Program, axes: Axes, ins: Roles, outs: Roles, at_once: AtOnce
) -> tuple[Program, Axes, Roles, Roles]:
    """What runs at the positions of all axes, if that is another mapped program and nothing else.

    So its lanes take their operands where these lie, and their results stay there.
    """
    inside = program.only
    if inside is None or inside.prim is not mapped or not _is_free(axes, at_once, **inside.params):
        return program, axes, ins, outs
    further: Axes = inside.params["axes"]
    return _with_inside(
        inside.params["program"],
        (*axes, *further),
        tuple([r.compose(i) for r, i in zip(ins, inside.params["ins"], strict=True)]),
        tuple([r.compose(i) for r, i in zip(outs, inside.params["outs"], strict=True)]),
        at_once,
    )


def _is_free(
    outer_axes: Axes, outer_at_once: AtOnce, *, axes: Axes, devices: Devices, mesh: Grid | None,
    at_once: AtOnce, lane_blocks: UnevenBlocks | None = None, **_: Any,
) -> bool:  # fmt: skip
    """Whether a mapped program inside another can run as a part of it: nothing fixes its devices,
    its axes have other names than those ``outer_axes`` it, and as many lanes run at once as
    ``outer_at_once``."""
    hides = {name for name, _ in outer_axes}.intersection(name for name, _ in axes)
    requested = (devices, mesh, lane_blocks)
    return not hides and at_once == outer_at_once and all(x is None for x in requested)


def _frame(
    *, program: Program, axes: Axes, ins: Roles, outs: Roles, devices: Devices, mesh: Grid | None,
    at_once: AtOnce, lane_blocks: UnevenBlocks | None = None,
) -> Frame:  # fmt: skip
    """Whole arrays have the padding of lanes that lie in ``lane_blocks``."""
    if lane_blocks is not None:
        ((name, _),) = axes
        axes = ((name, lane_blocks.padded),)
    return Frame((program,), ins, outs, Lanes(axes), mesh=mesh)


_batch_lanes = batch_rule(lambda: mapped)


def _lower(b: Builder, *xs: Value, **params: Any) -> list[Value]:
    return lower_region(b, *xs, region=_region(**params))


mapped: Primitive = with_subprograms(
    "mapped",
    _lower,
    _frame,
    batch=_batch,
    on_devices=OnDevices(region=_region),
    doc="a program at every position of named axes; sdy.manual_computation",
)
