"""Which words tell how a result lies: those of a mesh that the user or the program named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from phalanx.core.program import Atom, Program
from phalanx.core.region import Region
from phalanx.core.types import ArrayType
from phalanx.spmd.layout import axes_of
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding, P, PmapSharding
from phalanx.spmd.placement import Levels, region_equations, regions, row
from phalanx.spmd.sharding import Devices, Sharding


def named_results(
    program: Program,
    devices: Devices,
    levels: Levels,
    given: Iterable[Sharding],
    results: Sequence[Sharding],
) -> list[Sharding]:
    """How each result of ``program`` lies, in words that its user knows.

    What a region gives is told by the axes of the region. Anything else is told as an input that
    lies the same way, or over the mesh of an input or of a region; without names where the axes
    of none can tell it.

    Args:
        program: what is compiled.
        devices: where it runs.
        levels: the mesh that its regions form, as in ``ProgramMesh``.
        given: how its inputs lie.
        results: how its results lie, without names.
    """
    own: dict[Atom, NamedSharding] = {}
    for equation, region in region_equations(program):
        for var, layout in zip(equation.outputs, region.out_layouts, strict=True):
            own[var] = _told(region, devices, levels, layout)
    whole = [_told(region, devices, levels, ()) for region in regions(program)]
    known = list(dict.fromkeys([*(s for s in given if isinstance(s, NamedSharding)), *whole]))
    return [
        _named(plain.commit(), a.type, [own[a]]) if a in own else _named(plain, a.type, known)
        for a, plain in zip(program.outputs, results, strict=True)
    ]


def _named(plain: Sharding, type: ArrayType, known: Sequence[NamedSharding]) -> Sharding:
    """``plain``, as one of ``known`` or over the mesh of one, if that can tell it."""
    if not plain.committed:
        return plain
    same = (s for s in known if s.plain is plain)
    fitting = (s for s in (*same, *_over_meshes(plain, type, known)) if not s.refusal(type.shape))
    return next(fitting, plain)


def _over_meshes(
    plain: Sharding, type: ArrayType, known: Sequence[NamedSharding]
) -> Iterator[NamedSharding]:
    for s in known:
        layout = axes_of(plain, type.ndim, s.mesh.axes) if s.devices == plain.devices else None
        if layout is not None:
            yield s.update(spec=P.of(layout))


def _told(region: Region, devices: Devices, levels: Levels, layout: Any) -> NamedSharding:
    """What ``region`` gives in ``layout``, over the mesh of its axes."""
    axes = list(_axes(region, levels))
    mesh = Mesh(row(devices).reshape([n for _, n in axes]), _distinct([a for a, _ in axes]))
    names = dict(zip([axis for axis, _ in region.axes], mesh.axis_names, strict=False))
    spec = P.of(tuple(tuple(names[axis] for axis in cutting) for cutting in layout))
    return (PmapSharding if region.shared else NamedSharding)(mesh, spec)


def _axes(region: Region, levels: Levels) -> Iterator[tuple[Any, int]]:
    """The axes of ``region`` and of those inside it, and over how many devices each lies."""
    level, deeper = (levels[0], levels[1:]) if levels else ((), ())
    for cut in region.cuts(level):
        yield cut.axis, cut.blocks.count
    inner = next(regions(region.program), None)
    if inner is not None:
        yield from _axes(inner, deeper)
    else:
        yield from (axis for level in deeper for axis in level)


def _distinct(names: Sequence[Any]) -> list[str]:
    """Axes as names of a mesh: an inner one that hides another gets a number."""
    distinct: list[str] = []
    for name in map(str, names):
        hidden = sum(other.partition("#")[0] == name for other in distinct)
        distinct.append(f"{name}#{hidden}" if hidden else name)
    return distinct
