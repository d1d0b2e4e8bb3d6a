"""Placement: which devices a program runs on, and how the axes of its regions lie over them.

Lanes are logical: those of an axis are dealt out in equal blocks over as many devices as keep the
blocks smallest; the last block may end in padding. The outermost region is placed first, one
inside it over what remains for each of its blocks. The axes of a region that has a mesh lie over
those of the mesh; a program with such regions is laid out in axes in which all meshes can be told,
and what has no mesh lies over all of its devices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from msgspec import Struct

from phalanx.base.errors import MeshesDiffer, NoMesh
from phalanx.base.recent import memoized
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks, UnevenBlocks, fewest_blocks
from phalanx.core.layouts import Cut, MeshAxes, Target, over_mesh
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.region import Block, ChunkedLanes, Region
from phalanx.spmd.layout import axes_of, fewest_axes, prime_axes, primes, with_devices_counted_as
from phalanx.spmd.memory_kinds import target_of
from phalanx.spmd.mesh import AnyMesh, Mesh, mesh_over, row
from phalanx.spmd.named import P
from phalanx.spmd.sharding import Devices, Sharding, of_several_processes
from phalanx.spmd.torus import may_be_refused

Levels = tuple[MeshAxes, ...]
ShardingsOver = Callable[
    [Devices], Sequence[Sharding]
]  # how values of a program lie over its devices


class ProgramMesh(Struct, frozen=True):
    """The devices of a program, and the mesh that they form.

    ``levels[k]`` are the axes of the mesh over which a region's axis is divided that has ``k`` axes
    around it: for a ``pmap`` in a ``pmap``, ``levels[0]`` for the outer axis and ``levels[1]`` for
    the inner one. Regions with a mesh of their own do not use them.
    """

    devices: Devices
    axes: MeshAxes
    levels: Levels

    @property
    def spare(self) -> MeshAxes:
        """The axes along which regions without a mesh of their own do the same everywhere."""
        used = set(itertools.chain(*self.levels))
        return tuple(axis for axis in self.axes if axis not in used)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Over how many devices the regions of each level lie."""
        return tuple(map(_positions, self.levels))

    def cuts(self, region: Region, depth: int = 0) -> tuple[Cut, ...]:
        """How the axes of ``region``, around which there are ``depth`` others, are dealt out."""
        taken = self._taken_inside(region) if region.shared else frozenset[str]()
        if region.mesh is None:
            levels = itertools.chain(self.levels[depth:], itertools.repeat(()))
            under = {axis: level for (axis, _), level in zip(region.axes, levels, strict=False)}
        else:
            under = _under(cast(AnyMesh, region.mesh), self.devices, self.axes)
        if region.lane_blocks is not None:
            ((axis, level),) = under.items()
            return (Cut(axis, region.lane_blocks, tuple(name for name, _ in level)),)
        return tuple(
            _cut(axis, size, () if taken.intersection(dict(under[axis])) else under[axis])
            for axis, size in region.axes
        )

    def _taken_inside(self, region: Region) -> frozenset[str]:
        """The axes that regions with a mesh need that lie in ``region``; its lanes share them."""
        cuts = (cut for inner, _ in _with_meshes(region.program) for cut in self.cuts(inner))
        return frozenset(name for cut in cuts for name in cut.mesh)

    def held(self, mesh: AnyMesh) -> Mesh:
        """The part of ``mesh`` that the devices form: along an axis of few lanes, the first."""
        return _held(mesh, self.devices)

    def manual(self, region: Region) -> tuple[str, ...]:
        """The axes along which an outermost ``region`` says itself what each device does.

        Along the others of its mesh the compiler decides. What has no mesh takes all, unless it
        lies around what has one.
        """
        if region.mesh is None and not self._taken_inside(region):
            return tuple(name for name, _ in self.axes)
        return tuple(name for cut in self.cuts(region) for name in cut.mesh)

    def leaves_open(self, region: Region) -> bool:
        """Whether along some axes it is for the compiler to say how arrays of ``region`` lie."""
        return len(self.manual(region)) < len(self.axes)


def _positions(axes: MeshAxes) -> int:
    return math.prod(size for _, size in axes)


def _cut(axis: Any, size: int, mesh: MeshAxes) -> Cut:
    return Cut(axis, Blocks(size, _positions(mesh)), tuple(name for name, _ in mesh))


def regions(program: Program) -> tuple[Region, ...]:
    """The outermost regions of ``program``, those in its sub-programs included."""
    if all(p.on_devices.region is None for p in program.primitives):
        return ()
    equations = program.walk(into=is_no_region)
    return memoize_on(program, "regions", lambda: tuple([r for _, r in _with_regions(equations)]))


def _with_regions(equations: Iterable[Equation]) -> Iterator[tuple[Equation, Region]]:
    """Those ``equations`` that are regions, and these."""
    return ((e, e.region) for e in equations if not is_no_region(e))


def is_no_region(e: Equation) -> bool:
    """Whether ``e`` is none: its sub-programs, if it has some, belong to the program itself."""
    return e.prim.on_devices.region is None


def mesh_of(
    program: Program,
    available: Sequence[Any],
    use_all_devices: bool = False,
    shardings_over: ShardingsOver = lambda devices: (),
) -> ProgramMesh | None:
    """The devices and the mesh for the regions of ``program``; None if any device will do, since
    no axis is divided over several devices, and no region names its devices.

    ``use_all_devices``: the program runs on all ``available`` devices, also on those that no region
    needs. ``shardings_over(devices)`` gives the shardings of its values, which the mesh expresses,
    too, if possible.

    Raises:
        MeshesDiffer: regions have meshes that do not go together.
    """
    meshes = tuple(dict.fromkeys(_meshes(program)))
    if meshes:
        return _over_meshes(program, meshes, available, use_all_devices, shardings_over)
    counts: list[int] = []
    candidates, devices = tuple(available), ()
    for region in regions(program):
        room = tuple(available) if region.devices is None else region.devices
        needed = _counts(region, len(room))
        prescribed = region.devices is not None and not devices
        if math.prod(needed) > math.prod(counts) or prescribed:
            counts, candidates, devices = needed, room, room[: math.prod(needed)]
    if not devices:
        return None
    free = all(region.devices is None for region in regions(program))
    spare = len(devices) < len(candidates)
    if (
        (use_all_devices and free)
        or may_be_refused(devices)
        or (spare and of_several_processes(candidates))
    ):
        return _among(candidates, counts)
    levels = _levels(counts)
    return ProgramMesh(devices, tuple(itertools.chain(*levels)), levels)


def _among(devices: Devices, counts: list[int]) -> ProgramMesh:
    """A mesh of all ``devices``, for regions that need fewer: the others repeat what these compute,
    or hold padding."""
    spare, rest = divmod(len(devices), math.prod(counts))
    *levels, further = _levels([len(devices), 1] if rest else [*counts, spare])
    return ProgramMesh(devices, tuple(itertools.chain(*levels, further)), tuple(levels))


def _counts(region: Region, room: int) -> list[int]:
    """By level, over how many of ``room`` devices the axes of nested regions lie."""
    counts: list[int] = []
    for _, size in region.axes:
        counts.append((region.lane_blocks or fewest_blocks(size, room)).count)
        room //= counts[-1]
    inner = [_counts(r, room) for r in regions(region.program)]
    return [*counts, *max(inner, key=math.prod, default=())]


def _levels(counts: list[int]) -> Levels:
    """Mesh axes of prime size for each level, in which most other layouts can be expressed, too."""
    names = (f"m{i}" for i in itertools.count())
    return tuple(tuple((next(names), factor) for factor in primes(count)) for count in counts)


# ---- meshes of the user's -----------------------------------------------------------------------


def _with_meshes(program: Program) -> Iterator[tuple[Region, AnyMesh]]:
    """The regions at any depth that have a mesh."""
    for region in regions(program):
        if region.mesh is not None:
            yield region, region.mesh  # type: ignore[misc]
        yield from _with_meshes(region.program)


def _meshes(program: Program) -> Iterator[AnyMesh]:
    return (mesh for _, mesh in _with_meshes(program))


def _over_meshes(
    program: Program, meshes: Sequence[AnyMesh], available: Sequence[Any], use_all_devices: bool,
    shardings_over: ShardingsOver,
) -> ProgramMesh:  # fmt: skip
    """The devices of ``meshes``, with axes in which every mesh can be expressed.

    Where none of them has devices, they are the first of those ``available``.
    """
    some = len(meshes) == 1 and not use_all_devices
    first = next((m for m in meshes if isinstance(m, Mesh)), None)
    if first is None:
        devices = _enough(meshes[0], available, program.name)
    else:
        some = some and not first.is_multi_process
        devices = _taken(program, first) if some else first.flat
    grids = [_grid(mesh, devices) for mesh in meshes]
    ordered = [with_devices_counted_as(s, devices) for s in {*shardings_over(devices)}]
    axes = fewest_axes([_held(m, devices).axes for m in meshes], {*grids, *ordered})
    axes = axes or prime_axes(len(devices), *grids)
    if any(axes_of(grid, len(grid.tiles), axes) is None for grid in grids):
        raise MeshesDiffer(
            f"{program.name}: the meshes {', '.join(map(_spelled, meshes))} lie over the same "
            "devices, but do not cut them in the same places, so one program cannot use them all, "
            f"at {user_location()}. Give the meshes the same axes, or call what is over one mesh "
            "outside the jit of the others"
        )
    return ProgramMesh(devices, axes, (axes,))


def open_size(program: Program) -> int | None:
    """The number of devices that a region of ``program`` needs whose mesh has none; None if there
    is no such region."""
    return next((mesh.size for mesh in _meshes(program) if not mesh.has_devices), None)


def _enough(mesh: AnyMesh, available: Sequence[Any], who: str) -> Devices:
    """As many of the devices ``available`` as ``mesh`` has positions."""
    if mesh.size <= len(available):
        return tuple(available)[: mesh.size]
    raise NoMesh(
        f"{who}: {mesh} has no devices, and there are {len(available)}, at {user_location()}; set "
        "a mesh of as many as it needs, phalanx.set_mesh(mesh), or lower alone, for a platform "
        "that need not be here: f.trace(x).lower(lowering_platforms=('tpu',))"
    )


def _taken(program: Program, mesh: Mesh) -> Devices:
    """The devices of ``mesh`` that regions need: along an axis of few lanes, the first ones."""
    needed: dict[str, int] = {}
    for region in (r for r, _ in _with_meshes(program)):
        for axis, size in region.axes:
            count = fewest_blocks(size, mesh.shape[axis]).count
            needed[axis] = max(count, needed.get(axis, 1))
    return tuple(mesh.devices[tuple(slice(needed.get(a)) for a in mesh.axis_names)].flat)


def _grid(mesh: AnyMesh, devices: Devices) -> Sharding:
    """The sharding over ``devices`` of an array with one element for each position of ``mesh``."""
    place = {d: i for i, d in enumerate(devices)}
    held = _held(mesh, devices)
    return Sharding(devices, held.axis_sizes, [place[d] for d in held.flat])


@memoized(64)
def _held(mesh: AnyMesh, devices: Devices) -> Mesh:
    if not isinstance(mesh, Mesh):
        return mesh_over(mesh, devices)
    there = np.argwhere(np.vectorize(set(devices).__contains__, [bool])(mesh.devices))
    part = mesh.devices[tuple(slice(n + 1) for n in there.max(0, initial=-1))]
    if set(part.flat) != set(devices):
        raise MeshesDiffer(
            f"one program has functions over the devices {list(map(str, devices))} and over "
            f"{_spelled(mesh)}, at {user_location()}. All of its meshes must have the same devices"
        )
    return Mesh(part, mesh.axis_names, mesh.axis_types)


@memoized(64)
def _under(mesh: AnyMesh, devices: Devices, axes: MeshAxes) -> dict[str, MeshAxes]:
    """For each axis of ``mesh``, the ``axes`` of the program's mesh of ``devices`` that form it."""
    sizes = dict(axes)
    layout = axes_of(_grid(mesh, devices), len(mesh.axes), axes)
    assert layout is not None, "mesh_of chose axes in which it can be told"
    names = (tuple((name, sizes[name]) for name in cutting) for cutting in layout)
    return dict(zip(mesh.axis_names, names, strict=True))


def _spelled(mesh: AnyMesh) -> str:
    if not isinstance(mesh, Mesh):
        return repr(mesh)
    return f"{mesh!r} of {[getattr(d, 'id', d) for d in mesh.flat]}"


def most_lanes(program: Program, mesh: ProgramMesh) -> int:
    """How many lanes of an outermost region of ``program`` a device runs, at most."""
    cuts = [cut for r in regions(program) if r.shared for cut in mesh.cuts(r)]
    return max([cut.blocks.length for cut in cuts], default=1)


# A program is loaded once for each of the devices that run it independently, which takes the
# longer the longer the program is; and each part of a result is an object of the runtime. The
# launch that is saved, some 0.3 ms for eight devices, counts only beside little of both.
_MOST_EQUATIONS_INDEPENDENT = 256
_MOST_RESULTS_INDEPENDENT = 32


def is_independent(program: Program, mesh: ProgramMesh) -> bool:
    """Whether each device of ``mesh`` can run its part without communication.

    So it is where ``program`` is one region, whose program neither communicates nor acts.
    """
    if program.only is None or is_no_region(program.only) or program.effects:
        return False
    ((_, region),) = region_equations(program)
    return (
        not region.program.axes
        and math.prod(mesh.sizes[len(region.axes) :]) == 1
        and not any(_meshes(region.program))
        and not mesh.leaves_open(region)
        and len(program.outputs) <= _MOST_RESULTS_INDEPENDENT
        and sum(1 for _ in region.program.walk()) <= _MOST_EQUATIONS_INDEPENDENT
    )


def block_of(program: Program, mesh: ProgramMesh, target: Target) -> Block:
    """What each device runs of an independent program."""
    ((_, region),) = region_equations(program)
    return region.block(tuple(cut.blocks for cut in mesh.cuts(region)), False, target)


def spell_lanes(lanes: range) -> str:
    """The numbers of consecutive lanes, in words.

    >>> spell_lanes(range(5, 10)), spell_lanes(range(12, 13))
    ('lanes 5 to 9', 'lane 12')
    """
    return f"lanes {lanes[0]} to {lanes[-1]}" if len(lanes) > 1 else f"lane {lanes[0]}"


class InOrder(Struct, frozen=True):
    """A collective of reproducible lanes, which takes in their values in the order of lanes.

    Attributes:
        name: the collective, and the user's line.
        stored: of how many lanes a device stores the values, where else it adds each up at once.
        sent: how many rows of the size of a lane's value it exchanges with others, where else it
            exchanges one.
    """

    name: str
    stored: int
    sent: int

    def __str__(self) -> str:
        stored = f"stores {self.stored} lanes" if self.stored > 1 else ""
        sent = f"exchanges {self.sent} rows instead of 1" if self.sent > 1 else ""
        more = f": a device {' and '.join(filter(None, (stored, sent)))}" if stored or sent else ""
        return f"{self.name}, in the order of lanes{more}"


class Placement(Struct, frozen=True):
    """Where the lanes of an axis run.

    Attributes:
        axis: its name.
        size: how many lanes it has.
        devices: those that share them out, in order; for an axis inside another, those of the
            first lane of the outer one.
        lanes: how many lanes each device runs; lane ``i`` is on ``devices[i // lanes]``.
        padding: how many lanes at the end repeat the last one. Nobody sees them.
        chunked: the parts of the function, one after the other, that run a few lanes at a time.
        inside: the placements of the axes inside.
        in_order: what it costs that lanes are reproducible, for each collective that adds up.
    """

    axis: Any
    size: int
    devices: Devices
    lanes: int
    padding: int
    chunked: tuple[ChunkedLanes, ...] = ()
    inside: tuple[Placement, ...] = ()
    in_order: tuple[InOrder, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:  # what a prompt shows
        return str(self)

    def by_device(self) -> Iterator[tuple[Any, range]]:
        """Each device with the numbers of its lanes; the last ones may have fewer."""
        for i, device in enumerate(self.devices):
            yield device, range(i * self.lanes, min((i + 1) * self.lanes, self.size))

    def _lines(self) -> Iterator[str]:
        count = len(self.devices)
        where = f"{self.lanes} on each of {count} devices" if count > 1 else "all on 1 device"
        spare = f", {self.padding} of padding" if self.padding else ""
        yield f"axis {self.axis!r}: {self.size} lanes, {where}{spare}"
        for device, lanes in self.by_device():
            yield f"  {device}: {spell_lanes(lanes)}"
        alone = sum([chunk.reproducible for chunk in self.chunked])
        if alone:
            times = f"run {self.lanes} times" if self.lanes > 1 else "run once"
            parts = f"{alone} parts" if alone > 1 else "1 part"
            yield f"  reproducible: {parts}, compiled for one lane and {times}"
        yield from (f"  {chunk}" for chunk in self.chunked if not chunk.reproducible)
        yield from (f"  {collective}" for collective in self.in_order)
        for inner in self.inside:
            yield from (f"  {line}" for line in inner._lines())


def placements(
    program: Program, mesh: ProgramMesh | None, default: Devices
) -> tuple[Placement, ...]:
    """Where the axes of regions lie; ``default`` is the device of a program without a mesh."""
    if mesh is None:
        mesh = ProgramMesh(default, (), ())
    grid = row(mesh.devices).reshape([size for _, size in mesh.axes])
    return tuple(_placements(program, mesh, _Places(grid, tuple(n for n, _ in mesh.axes)), 0))


class _Places(Struct, frozen=True):
    """A part of the devices of a program, one dimension for each of the axes ``names``."""

    devices: np.ndarray
    names: tuple[str, ...]

    def along(self, names: tuple[str, ...]) -> list[_Places]:
        """The parts at each position of the axes ``names``."""
        rest = tuple(n for n in self.names if n not in names)
        turned = self.devices.transpose([self.names.index(n) for n in (*names, *rest)])
        parts = turned.reshape(-1, *turned.shape[len(names) :])
        return [_Places(parts[i, ...], rest) for i in range(len(parts))]


def _placements(
    program: Program, mesh: ProgramMesh, places: _Places, depth: int
) -> Iterator[Placement]:
    for region in regions(program):
        cuts = mesh.cuts(region, depth)
        target = target_of(mesh.devices[0])
        block = region.block(tuple([cut.blocks for cut in cuts]), False, target)
        yield _placement(cuts, region.program, block, mesh, places, depth)


def _placement(
    cuts: Sequence[Cut], program: Program, block: Block, mesh: ProgramMesh, places: _Places,
    depth: int,
) -> Placement:  # fmt: skip
    """Where the first of the axes of a region lies, the others inside it."""
    blocks, parts = cuts[0].blocks, places.along(cuts[0].mesh)
    inside = (
        (_placement(cuts[1:], program, block, mesh, parts[0], depth + 1),)
        if len(cuts) > 1
        else tuple(_placements(program, mesh, parts[0], depth + 1))
    )
    devices = tuple(part.devices.flat[0] for part in parts)
    mine = tuple([chunk for chunk in block.chunked if chunk.axis == cuts[0].axis])
    in_order = _in_order(program, cuts[0]) if block.reproducible else ()
    return Placement(
        cuts[0].axis, blocks.size, devices, blocks.length, blocks.padding, mine, inside, in_order
    )


def _in_order(program: Program, cut: Cut) -> tuple[InOrder, ...]:
    """What collectives of reproducible lanes store and exchange: a device adds up those pairs of
    neighbours that lie in it, as far as all devices have the same."""
    length, uneven = cut.blocks.length, isinstance(cut.blocks, UnevenBlocks)
    rows = length if uneven else length // (length & -length)
    sent = rows if cut.blocks.count > 1 else 1
    adding = [e for e in program.walk() if cut.axis in e.axes and e.prim.fold is not None]
    names = dict.fromkeys([f"{e.prim} at {e.location}" for e in adding])
    return tuple([InOrder(name, length, sent) for name in names])


def region_inputs(program: Program, mesh: ProgramMesh) -> list[P | None]:
    """Per input, how the first region that uses it takes it; None if none does."""
    specs: dict[Atom, P] = {}
    for equation, region, cuts in _decided(program, mesh):
        for atom, layout in zip(equation.inputs, region.in_layouts, strict=True):
            specs.setdefault(atom, P.of(over_mesh(layout, cuts)))
    return [specs.get(v) for v in program.inputs]


def region_outputs(program: Program, mesh: ProgramMesh) -> list[P | None]:
    """Per output, how a region makes it; None if none does."""
    specs: dict[Atom, P] = {}
    for equation, region, cuts in _decided(program, mesh):
        for var, layout in zip(equation.outputs, region.out_layouts, strict=True):
            specs[var] = P.of(over_mesh(layout, cuts))
    return [specs.get(a) if isinstance(a, Var) else P() for a in program.outputs]


def _decided(
    program: Program, mesh: ProgramMesh
) -> Iterator[tuple[Equation, Region, tuple[Cut, ...]]]:
    """The regions that divide, or repeat, their arrays along every axis of ``mesh``: they leave
    nothing to the compiler."""
    for equation, region in region_equations(program):
        if not mesh.leaves_open(region):
            yield equation, region, mesh.cuts(region)


def region_equations(program: Program) -> tuple[tuple[Equation, Region], ...]:
    """The equations of ``program`` itself that are regions."""
    if all(p.on_devices.region is None for p in program.primitives):
        return ()
    own = program.equations
    return memoize_on(program, "region equations", lambda: tuple(_with_regions(own)))
