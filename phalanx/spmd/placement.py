"""Placement: which devices a program runs on, and how its mapped axes lie over them.

A mapped axis is logical. Its lanes are dealt out in equal blocks over as many devices as keep
the blocks smallest; the last block may end in padding. The outermost axis is placed first, an
axis inside it over what remains for each of its blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.core.blocks import Blocks, fewest_blocks
from phalanx.core.primitive import Spread
from phalanx.core.program import Equation, Program, Var
from phalanx.spmd.layout import Layout, MeshAxes, primes
from phalanx.spmd.sharding import Devices


@dataclass(frozen=True, slots=True)
class ProgramMesh:
    """The devices of a program, the mesh that they form, and the mesh axes of each level.

    A level is a nesting depth of mapped axes: level 0 is that of the outermost ones.
    """

    devices: Devices
    axes: MeshAxes
    levels: tuple[tuple[str, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Over how many devices the axes of each level lie."""
        size = dict(self.axes)
        return tuple(math.prod(size[name] for name in names) for names in self.levels)

    def split(self, dim: int) -> Layout:
        """The layout of an array whose dimension ``dim`` is the axis of level 0."""
        return (*((),) * dim, self.levels[0])


def spreads(program: Program) -> Iterator[Spread]:
    """The outermost mapped axes of ``program``."""
    for equation in program.equations:
        if equation.prim.spread is not None:
            yield equation.prim.spread(equation.params)
            continue
        for inner in equation.programs:
            yield from spreads(inner)


def mesh_of(program: Program, available: Sequence[Any]) -> ProgramMesh | None:
    """Where the mapped axes of ``program`` go; None if that is of no consequence.

    It is of none where no axis lies over several devices and none has devices prescribed.
    """
    best: tuple[tuple[int, ...], Devices] = ((), ())
    for spread in spreads(program):
        devices = tuple(available) if spread.devices is None else spread.devices
        sizes = _fitting(spread, len(devices))
        prescribed = spread.devices is not None and not best[1]
        if math.prod(sizes) > math.prod(best[0]) or prescribed:
            best = sizes, devices[: math.prod(sizes)]
    sizes, devices = best
    return _mesh(sizes, devices) if devices else None


def _fitting(spread: Spread, room: int) -> tuple[int, ...]:
    """Over how many of ``room`` devices the nested axes go, outermost first."""
    devices = fewest_blocks(spread.size, room).count
    inner = (_fitting(s, room // devices) for s in spreads(spread.program))
    return (devices, *max(inner, key=math.prod, default=()))


def _mesh(sizes: tuple[int, ...], devices: Devices) -> ProgramMesh:
    axes: list[tuple[str, int]] = []
    levels: list[tuple[str, ...]] = []
    for size in sizes:
        factors = [(f"m{len(axes) + i}", f) for i, f in enumerate(primes(size))]
        levels.append(tuple(name for name, _ in factors))
        axes += factors
    return ProgramMesh(devices, tuple(axes), tuple(levels))


# A program is loaded once for each of the devices that run it apart, which takes the longer the
# longer the program is; and each part of a result is an object of the runtime. The launch that
# is saved, some 0.3 ms for eight devices, counts only beside little of both.
_MOST_EQUATIONS_APART = 256
_MOST_RESULTS_APART = 32


def runs_apart(program: Program, mesh: ProgramMesh) -> bool:
    """Whether each device of ``mesh`` can run its lanes without a word to the others.

    So it is where ``program`` is one mapped axis, whose lanes neither communicate nor act.
    """
    found = list(_mapped(program))
    if len(program.equations) > 1 or not found or program.effects:
        return False
    ((equation, spread),) = found
    return (
        not spread.program.axes
        and math.prod(mesh.sizes[1:]) == 1
        and list(program.inputs) == equation.inputs
        and program.outputs == equation.outputs
        and len(program.outputs) <= _MOST_RESULTS_APART
        and sum(1 for _ in spread.program.walk()) <= _MOST_EQUATIONS_APART
    )


def of_one_device(program: Program, devices: int) -> Any:
    """The block of lanes that each of ``devices`` runs of a program that runs apart."""
    ((_, spread),) = _mapped(program)
    return spread.block(Blocks(spread.size, devices))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the lanes of a mapped axis run.

    Attributes:
        axis: its name.
        size: how many lanes it has.
        devices: those that share them out, in order; for an axis inside another, those of the
            first lane of the outer one.
        lanes: how many lanes each device runs; lane ``i`` is on ``devices[i // lanes]``.
        padding: how many lanes at the end repeat the last one. Nobody sees them.
        inside: the placements of the mapped axes inside.
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
    """Where the mapped axes of ``program`` go; ``default`` are the devices without a layout."""
    devices = default if mesh is None else mesh.devices
    sizes = () if mesh is None else mesh.sizes
    return tuple(_placements(program, np.array(devices, object).reshape(sizes or (1,))))


def _placements(program: Program, mesh: np.ndarray) -> Iterator[Placement]:
    for spread in spreads(program):
        here = mesh.reshape(mesh.shape[0], -1)[:, 0]
        inner = mesh[0] if mesh.ndim > 1 else mesh[:1]
        dealt = Blocks(spread.size, len(here))
        yield Placement(
            spread.axis, dealt.size, tuple(here), dealt.length, dealt.padding,
            tuple(_placements(spread.program, inner)),
        )  # fmt: skip


def wanted_inputs(program: Program, mesh: ProgramMesh) -> list[Layout | None]:
    """Per input, how the mapped equation that takes it wants it; None if none does."""
    wanted: dict[Var, Layout] = {}
    for equation, spread in _mapped(program):
        for atom, dim in zip(equation.inputs, spread.in_dims, strict=True):
            if isinstance(atom, Var):
                wanted.setdefault(atom, () if dim is None else mesh.split(dim))
    return [wanted.get(v) for v in program.inputs]


def given_outputs(program: Program, mesh: ProgramMesh) -> list[Layout | None]:
    """Per output, how the mapped equation that makes it leaves it; None if none does."""
    given: dict[Var, Layout] = {}
    for equation, spread in _mapped(program):
        for var, dim in zip(equation.outputs, spread.out_dims, strict=True):
            given[var] = () if dim is None else mesh.split(dim)
    return [given.get(a) if isinstance(a, Var) else () for a in program.outputs]


def _mapped(program: Program) -> Iterator[tuple[Equation, Spread]]:
    for equation in program.equations:
        if equation.prim.spread is not None:
            yield equation, equation.prim.spread(equation.params)
