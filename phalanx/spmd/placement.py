"""Placement: which devices a program runs on, and how the axes of its regions lie over them.

Lanes are logical: those of an axis are dealt out in equal blocks over as many devices as keep the
blocks smallest; the last block may end in padding. The outermost region is placed first, one
inside it over what remains for each of its blocks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.region import Block, Cut, Layout, MeshAxes, Region, over_mesh
from phalanx.spmd.layout import primes
from phalanx.spmd.sharding import Devices

Levels = tuple[MeshAxes, ...]


@dataclass(frozen=True, slots=True)
class ProgramMesh:
    """The devices of a program, and the mesh that they form: its axes, by level.

    A level is a nesting depth of regions: over the axes of level 0 lie the outermost ones.
    """

    devices: Devices
    levels: Levels

    @property
    def axes(self) -> MeshAxes:
        """The axes of all levels."""
        return tuple(axis for level in self.levels for axis in level)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Over how many devices the regions of each level lie."""
        return tuple(math.prod(size for _, size in level) for level in self.levels)


def regions(program: Program) -> Iterator[Region]:
    """The outermost regions of ``program``, those in its sub-programs included."""
    if all(p.region is None for p in program.primitives):
        return
    for equation in program.equations:
        if equation.prim.region is not None:
            yield equation.prim.region(equation.params)
            continue
        for inner in equation.programs:
            yield from regions(inner)


def mesh_of(program: Program, available: Sequence[Any]) -> ProgramMesh | None:
    """Where the regions of ``program`` lie; None if that is of no consequence.

    It is of none where no axis lies over several devices and none has devices prescribed.
    """
    counts: list[tuple[int, ...]] = []
    devices: Devices = ()
    for region in regions(program):
        room = tuple(available) if region.devices is None else region.devices
        needed = _counts(region, len(room))
        prescribed = region.devices is not None and not devices
        if _total(needed) > _total(counts) or prescribed:
            counts, devices = needed, room[: _total(needed)]
    return ProgramMesh(devices, _levels(counts)) if devices else None


def _counts(region: Region, room: int) -> list[tuple[int, ...]]:
    """By level, over how many of ``room`` devices each axis of nested regions lies."""
    counts = region.counts(room)
    inner = [_counts(r, room // math.prod(counts)) for r in regions(region.program)]
    return [counts, *max(inner, key=_total)] if inner else [counts]


def _total(counts: Sequence[tuple[int, ...]]) -> int:
    return math.prod(map(math.prod, counts))


def _levels(counts: list[tuple[int, ...]]) -> Levels:
    """Mesh axes of prime size for each level, so that other layouts can be told in them."""
    names = (f"m{i}" for i in itertools.count())
    return tuple(
        tuple((next(names), factor) for count in level for factor in primes(count))
        for level in counts
    )


# A program is loaded once for each of the devices that run it independently, which takes the
# longer the longer the program is; and each part of a result is an object of the runtime. The
# launch that is saved, some 0.3 ms for eight devices, counts only beside little of both.
_MOST_EQUATIONS_INDEPENDENT = 256
_MOST_RESULTS_INDEPENDENT = 32


def is_independent(program: Program, mesh: ProgramMesh) -> bool:
    """Whether each device of ``mesh`` can run its part without communication.

    So it is where ``program`` is one region, whose program neither communicates nor acts.
    """
    outermost = list(region_equations(program))
    if len(program.equations) > 1 or not outermost or program.effects:
        return False
    ((equation, region),) = outermost
    return (
        not region.program.axes
        and math.prod(mesh.sizes[1:]) == 1
        and list(program.inputs) == equation.inputs
        and program.outputs == equation.outputs
        and len(program.outputs) <= _MOST_RESULTS_INDEPENDENT
        and sum(1 for _ in region.program.walk()) <= _MOST_EQUATIONS_INDEPENDENT
    )


def block_of(program: Program, levels: Levels) -> Block:
    """What each device runs of an independent program."""
    ((_, region),) = region_equations(program)
    return region.block(tuple(cut.blocks for cut in region.cuts(levels[0])))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the lanes of an axis run.

    Attributes:
        axis: its name.
        size: how many lanes it has.
        devices: those that share them out, in order; for an axis inside another, those of the
            first lane of the outer one.
        lanes: how many lanes each device runs; lane ``i`` is on ``devices[i // lanes]``.
        padding: how many lanes at the end repeat the last one. Nobody sees them.
        inside: the placements of the axes inside.
    """

    axis: Any
    size: int
    devices: Devices
    lanes: int
    padding: int
    inside: tuple[Placement, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        count = len(self.devices)
        where = f"{self.lanes} on each of {count} devices" if count > 1 else "all on 1 device"
        spare = f", {self.padding} of padding" if self.padding else ""
        yield f"axis {self.axis!r}: {self.size} lanes, {where}{spare}"
        for i, device in enumerate(self.devices):
            first, last = i * self.lanes, min((i + 1) * self.lanes, self.size) - 1
            yield f"  {device}: lanes {first} to {last}" if first < last else (
                f"  {device}: lane {first}"
            )
        for inner in self.inside:
            yield from (f"  {line}" for line in inner._lines())


def placements(
    program: Program, mesh: ProgramMesh | None, default: Devices
) -> tuple[Placement, ...]:
    """Where the axes of regions lie; ``default`` are the devices of a program without a mesh."""
    if mesh is None:
        return tuple(_placements(program, row(default), ()))
    return tuple(_placements(program, row(mesh.devices), mesh.levels))


def row(devices: Devices) -> np.ndarray:
    """The devices as an array, which leaves them as they are."""
    row = np.empty(len(devices), object)
    row[:] = devices
    return row


def _placements(program: Program, devices: np.ndarray, levels: Levels) -> Iterator[Placement]:
    level, deeper = (levels[0], levels[1:]) if levels else ((), ())
    for region in regions(program):
        yield _placement(region.cuts(level), region.program, devices, deeper)


def _placement(
    cuts: Sequence[Cut], program: Program, devices: np.ndarray, deeper: Levels
) -> Placement:
    """Where the first of the axes of a region lies, the others inside it."""
    blocks = cuts[0].blocks
    rows = devices.reshape(blocks.count, -1)
    inside = (
        (_placement(cuts[1:], program, rows[0], deeper),)
        if len(cuts) > 1
        else tuple(_placements(program, rows[0], deeper))
    )
    return Placement(
        cuts[0].axis, blocks.size, tuple(rows[:, 0]), blocks.length, blocks.padding, inside
    )


def wanted_inputs(program: Program, mesh: ProgramMesh) -> list[Layout | None]:
    """Per input, the layout that the first region wants that takes it; None if none does."""
    wanted: dict[Atom, Layout] = {}
    for equation, region in region_equations(program):
        cuts = region.cuts(mesh.levels[0])
        for atom, layout in zip(equation.inputs, region.in_layouts, strict=True):
            wanted.setdefault(atom, over_mesh(layout, cuts))
    return [wanted.get(v) for v in program.inputs]


def given_outputs(program: Program, mesh: ProgramMesh) -> list[Layout | None]:
    """Per output, the layout that the region gives it that makes it; None if none does."""
    given: dict[Atom, Layout] = {}
    for equation, region in region_equations(program):
        cuts = region.cuts(mesh.levels[0])
        for var, layout in zip(equation.outputs, region.out_layouts, strict=True):
            given[var] = over_mesh(layout, cuts)
    return [given.get(a) if isinstance(a, Var) else () for a in program.outputs]


def region_equations(program: Program) -> Iterator[tuple[Equation, Region]]:
    """The equations of ``program`` itself that are regions."""
    for equation in program.equations:
        if equation.prim.region is not None:
            yield equation, equation.prim.region(equation.params)
