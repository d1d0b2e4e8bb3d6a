"""Names of the shardings of results: a compiled program gives layouts, and users know meshes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from phalanx.base.recent import memoized
from phalanx.core.program import Atom, Program
from phalanx.core.region import Region
from phalanx.core.types import ArrayType
from phalanx.spmd.layout import axes_of
from phalanx.spmd.mesh import Mesh, row
from phalanx.spmd.named import NamedSharding, P, PmapSharding
from phalanx.spmd.placement import ProgramMesh, region_equations, regions
from phalanx.spmd.sharding import Sharding


def candidate_shardings(
    program: Program, mesh: ProgramMesh, arguments: Iterable[Sharding]
) -> list[NamedSharding]:
    """The shardings over meshes that results of ``program`` may be named after: those of
    ``arguments``, constraints among them, and of regions."""
    closed = (r for r in regions(program) if r.mesh is not None or not mesh.leaves_open(r))
    replicated = [_named_by_region(region, mesh, ()) for region in closed]
    return list(
        dict.fromkeys([*(s for s in arguments if isinstance(s, NamedSharding)), *replicated])
    )


def named_results(
    program: Program,
    mesh: ProgramMesh,
    candidates: Sequence[NamedSharding],
    results: Sequence[Sharding],
) -> list[Sharding]:
    """The sharding of each result of ``program``, over a mesh that its user knows.

    A result of a region is named after the axes of the region. Any other gets the name of one of
    the ``candidates`` with the same layout, or else one over the mesh of one; if no such mesh can
    express it, it stays without a name.

    Args:
        program: what is compiled.
        mesh: where it runs.
        candidates: the names in which it speaks.
        results: how its results lie, without names.
    """
    own: dict[Atom, NamedSharding] = {}
    for equation, region in region_equations(program):
        if not mesh.leaves_open(region):
            for var, layout in zip(equation.outputs, region.out_layouts, strict=True):
                own[var] = _named_by_region(region, mesh, layout)
    return [
        named(plain.commit(), a.type, [own[a]]) if a in own else named(plain, a.type, candidates)
        for a, plain in zip(program.outputs, results, strict=True)
    ]


def named(plain: Sharding, type: ArrayType, candidates: Sequence[NamedSharding]) -> Sharding:
    """``plain`` by the name of one of ``candidates`` with this layout, in whichever memory, or else
    over the mesh of one that can express it."""
    without_sums = [s for s in candidates if not s.spec.has_sums]
    alike = [s for s in without_sums if s.plain.in_memory(None) is plain.plain.in_memory(None)]
    same = (s.in_memory(plain.memory) for s in alike)
    fitting = (
        s for s in (*same, *_over_meshes(plain, type, candidates)) if not s.refusal(type.shape)
    )
    name = in_full(next(fitting, plain), type.ndim)
    return name.commit() if plain.committed else name.freed()


def in_full(name: Sharding, ndim: int) -> Sharding:
    """``name``; over a mesh with Explicit axes with an entry for each of ``ndim`` dimensions.

    Then it equals the sharding of the type, with which users compare it.

    >>> from phalanx.spmd.mesh import AxisType
    >>> mesh = Mesh([0, 1], "x", axis_types=AxisType.Explicit)
    >>> in_full(NamedSharding(mesh, P("x")), 2).spec
    P('x', None)
    """
    if not isinstance(name, NamedSharding) or not name.mesh.explicit_axes:
        return name
    missing = ndim - len(name.spec)
    if missing <= 0:
        return name
    return name.update(spec=name.spec.update(partitions=(*name.spec, *(None,) * missing)))


@memoized(1024)
def of_words(keys: Sharding, ndim: int) -> Sharding:
    """How the words of random keys lie, which are whole, where the keys lie as ``keys``.

    >>> from phalanx.spmd.mesh import Mesh
    >>> of_words(NamedSharding(Mesh([0, 1], "x"), P("x")), 1).spec
    P('x', None)

    Args:
        keys: how the keys lie.
        ndim: the number of their dimensions; the words have one more, which is told where all
            others are.
    """
    if not isinstance(keys, NamedSharding) or len(keys.spec) < ndim:
        return keys
    return _respelled(keys, (*keys.spec, None))


@memoized(1024)
def of_keys(words: Sharding, ndim: int) -> Sharding:
    """How random keys of ``ndim`` dimensions lie whose words lie as ``words``.

    >>> from phalanx.spmd.mesh import Mesh
    >>> of_keys(NamedSharding(Mesh([0, 1], "x"), P("x", None)), 1).spec
    P('x')
    """
    if not isinstance(words, NamedSharding) or len(words.spec) <= ndim:
        return words
    return _respelled(words, words.spec[:ndim])


def _respelled(name: NamedSharding, entries: Iterable[Any]) -> Sharding:
    respelled = name.update(spec=name.spec.update(partitions=entries))
    return respelled.commit() if name.committed else respelled.freed()


@memoized(1024)
def of_part(
    sharding: Sharding, positions: tuple[int, ...], counts: tuple[int | None, ...]
) -> Sharding:
    """The sharding of a part of an array that is laid out as ``sharding``; nobody chose that.

    A mesh that names it has the same axes, of type Auto: no type says that it lies on a part of the
    devices. Those that cut what is read at one place have size 1.

    Args:
        sharding: that of the array.
        positions: of the devices that have the part, in the order of its tiles.
        counts: per dimension of the array how many tiles the part has; None: a single row, without
            the dimension.

    >>> rows = NamedSharding(Mesh([[0, 1], [2, 3]], ("x", "y")), P("x", "y"))
    >>> of_part(rows, (2, 3), (None, 2))
    NamedSharding(mesh=Mesh('x': 1, 'y': 2), spec=P('y'))
    """
    devices = [sharding.device_list[p] for p in positions]
    if not isinstance(sharding, NamedSharding):
        return Sharding(devices, [n for n in counts if n is not None], committed=False)
    mesh, sizes = sharding.mesh, dict.fromkeys(sharding.mesh.axis_names, 1)
    layout = dict(enumerate(sharding.spec.layout))
    order = [name for names in layout.values() for name in names]
    order += [name for name in sizes if name not in order]
    for dim, names in layout.items():
        left = counts[dim] or 1
        for name in reversed(names):
            sizes[name] = left if left % mesh.shape[name] else mesh.shape[name]
            left //= sizes[name]
    grid = row(devices).reshape([sizes[name] for name in order])
    turned = grid.transpose([order.index(name) for name in sizes])
    spec = P.of(tuple(layout.get(d, ()) for d, n in enumerate(counts) if n is not None))
    return type(sharding)(Mesh(turned, mesh.axis_names), spec).freed()


def _over_meshes(
    plain: Sharding, type: ArrayType, candidates: Sequence[NamedSharding]
) -> Iterator[NamedSharding]:
    for s in candidates:
        same = s.device_list == plain.device_list
        layout = axes_of(plain, type.ndim, s.mesh.axes) if same else None
        if layout is not None:
            yield s.update(spec=P.of(layout)).in_memory(plain.memory)


def _named_by_region(region: Region, mesh: ProgramMesh, layout: Any) -> NamedSharding:
    """What ``region`` gives in ``layout``, over its mesh or else over that of its axes."""
    kind = PmapSharding if region.shared else NamedSharding
    if region.mesh is not None:
        return kind(mesh.held(region.mesh), P.of(layout))  # type: ignore[arg-type]
    axes = list(_axes(region, mesh, 0))
    grid = row(mesh.devices).reshape([n for _, n in axes])
    named = Mesh(grid, _distinct([a for a, _ in axes]))
    names = dict(zip([axis for axis, _ in region.axes], named.axis_names, strict=False))
    return kind(named, P.of(tuple(tuple(names[axis] for axis in cutting) for cutting in layout)))


def _axes(region: Region, mesh: ProgramMesh, depth: int) -> Iterator[tuple[Any, int]]:
    """The axes of ``region`` and of those inside it, and over how many devices each lies."""
    for cut in mesh.cuts(region, depth):
        yield cut.axis, cut.blocks.count
    depth += len(region.axes)
    inner = regions(region.program)
    if inner:
        yield from _axes(inner[0], mesh, depth)
    else:
        yield from (axis for level in mesh.levels[depth:] for axis in level)
        yield from mesh.spare


def _distinct(names: Sequence[Any]) -> list[str]:
    """Axes as names of a mesh: an inner one that hides another gets a number."""
    distinct: list[str] = []
    for name in map(str, names):
        hidden = sum(other.partition("#")[0] == name for other in distinct)
        distinct.append(f"{name}#{hidden}" if hidden else name)
    return distinct
