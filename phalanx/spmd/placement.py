"""Placement: which devices a program runs on, and how its mapped axes lie over them.

A mapped axis is logical. The outermost axis that fits is laid over the devices, one lane
each; an axis inside it over what remains. An axis that does not fit is vectorized on one
device, which by the pmap law gives the same values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phalanx.core.primitive import Spread
from phalanx.core.program import Equation, Program, Var
from phalanx.spmd.sharding import Dims, MeshAxes, primes


@dataclass(frozen=True, slots=True)
class Layout:
    """The devices of a program, the mesh that they form, and the mesh axes of each level.

    A level is a nesting depth of mapped axes: level 0 is that of the outermost ones.
    """

    devices: tuple
    axes: MeshAxes
    levels: tuple[tuple[str, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many lanes lie over devices, at each level."""
        size = dict(self.axes)
        return tuple(math.prod(size[name] for name in names) for names in self.levels)

    def split(self, dim: int) -> Dims:
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


def layout(program: Program, available: Sequence) -> Layout | None:
    """Where the mapped axes of ``program`` go; None if that is of no consequence.

    It is of none where no axis lies over several devices and none has devices prescribed.
    """
    best: tuple[tuple[int, ...], tuple] = ((), ())
    for spread in spreads(program):
        devices = tuple(available) if spread.devices is None else spread.devices
        sizes = _fitting(spread, len(devices))
        prescribed = spread.devices is not None and not best[1]
        if math.prod(sizes) > math.prod(best[0]) or prescribed:
            best = sizes, devices[: math.prod(sizes)]
    sizes, devices = best
    return _mesh(sizes, devices) if devices else None


def _fitting(spread: Spread, room: int) -> tuple[int, ...]:
    """The sizes of the nested axes, outermost first, whose product fits in ``room``."""
    if spread.size > room:
        return ()
    inner = (_fitting(s, room // spread.size) for s in spreads(spread.program))
    return (spread.size, *max(inner, key=math.prod, default=()))


def _mesh(sizes: tuple[int, ...], devices: tuple) -> Layout:
    axes: list[tuple[str, int]] = []
    levels = []
    for size in sizes:
        factors = [(f"m{len(axes) + i}", f) for i, f in enumerate(primes(size))]
        levels.append(tuple(name for name, _ in factors))
        axes += factors
    return Layout(devices, tuple(axes), tuple(levels))


def wanted_inputs(program: Program, lay: Layout) -> list[Dims | None]:
    """Per input, how the mapped equation that takes it wants it; None if none does."""
    wanted: dict[Var, Dims] = {}
    for equation, spread in _on_mesh(program, lay):
        for atom, dim in zip(equation.inputs, spread.in_dims, strict=True):
            if isinstance(atom, Var):
                wanted.setdefault(atom, () if dim is None else lay.split(dim))
    return [wanted.get(v) for v in program.inputs]


def given_outputs(program: Program, lay: Layout) -> list[Dims | None]:
    """Per output, how the mapped equation that makes it leaves it; None if none does."""
    given: dict[Var, Dims] = {}
    for equation, spread in _on_mesh(program, lay):
        for var, dim in zip(equation.outputs, spread.out_dims, strict=True):
            given[var] = () if dim is None else lay.split(dim)
    return [given.get(a) if isinstance(a, Var) else () for a in program.outputs]


def _on_mesh(program: Program, lay: Layout) -> Iterator[tuple[Equation, Spread]]:
    for equation in program.equations:
        if equation.prim.spread is not None:
            spread = equation.prim.spread(equation.params)
            if lay.axes and spread.size == lay.sizes[0]:
                yield equation, spread
