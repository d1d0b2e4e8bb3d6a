"""Layouts: which axes of a mesh split which dimensions of an array.

A ``Sharding`` says where the parts of an array lie, a layout how its dimensions follow the axes of
a mesh. A program is written in layouts; from a mesh and a layout follows the sharding.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from phalanx.base.errors import coded, suggest_axis
from phalanx.base.recent import memoized
from phalanx.base.source import user_location
from phalanx.core.layouts import Layout, MeshAxes
from phalanx.core.mesh_spec import MeshSpec
from phalanx.spmd.sharding import Sharding


def from_axes(
    devices: Sequence[Any], mesh_axes: MeshAxes, dims: Layout, who: str = "sharding"
) -> Sharding:
    """The sharding of ``devices``, a mesh filled row by row, whose dimensions ``dims`` split.

    >>> from_axes(range(6), (("x", 2), ("y", 3)), ((), ("y",))).tiles
    (1, 3)
    """
    sizes = dict(mesh_axes)
    used = [name for names in dims for name in names]
    for name in used:
        if name not in sizes:
            hint = suggest_axis(name, sizes)
            error = ValueError(
                f"{who}: the mesh has no axis {name!r} of {MeshSpec.of(None, dims)}, at "
                f"{user_location()}. {hint}"
            )
            spec, there = str(MeshSpec.of(None, dims)), ", ".join(map(repr, sizes))
            raise coded(error, "no such axis", axis=name, spec=spec, axes=there)
        if used.count(name) > 1:
            error = ValueError(
                f"{who}: axis {name!r} occurs more than once in {MeshSpec.of(None, dims)}, "
                f"at {user_location()}; an axis cuts one dimension"
            )
            spec = str(MeshSpec.of(None, dims))
            raise coded(error, "axis twice", who=who, axis=name, spec=spec)
    names = list(sizes)
    order = [names.index(n) for n in used] + [i for i, n in enumerate(names) if n not in used]
    places = np.arange(len(devices)).reshape(tuple(sizes.values())).transpose(order)
    tiles = tuple(math.prod(sizes[n] for n in split) for split in dims)
    return Sharding(devices, tiles, places.ravel().tolist()).plain


def axes_of(sharding: Sharding, ndim: int, mesh_axes: MeshAxes) -> Layout | None:
    """The inverse of ``from_axes``: per dimension the mesh axes that split it, or None.

    >>> axes_of(Sharding(range(4), (2,)), 2, (("x", 2), ("y", 2)))
    (('x',), ())
    """
    sharding = sharding.plain
    if math.prod(size for _, size in mesh_axes) != len(sharding.device_list):
        return None
    splitting: list[list[tuple[int, str]]] = [[] for _ in range(max(ndim, len(sharding.tiles)))]
    stride = len(sharding.device_list)
    for name, size in mesh_axes:
        stride //= size
        if size == 1:
            continue
        steps = [(dim, t) for dim, t in enumerate(sharding.tile_at(stride)) if t]
        if len(steps) > 1:
            return None
        for dim, step in steps:
            splitting[dim].append((-step, name))
    dims = tuple(tuple(name for _, name in sorted(split)) for split in splitting)
    exact = from_axes(sharding.device_list, mesh_axes, dims)
    same = (exact.tiles, exact.assignment) == (sharding.tiles, sharding.assignment)
    return dims if same else None


def prime_axes(count: int, *shardings: Sharding) -> MeshAxes:
    """A mesh of ``count`` devices with axes of prime size, in which ``shardings`` can be told.

    The order of the factors is the first in which most of them can.

    >>> prime_axes(6), prime_axes(6, Sharding(range(6), (3,)))
    ((('m0', 2), ('m1', 3)), (('m0', 3), ('m1', 2)))
    """

    def expressible(axes: MeshAxes) -> int:
        return sum(axes_of(s, len(s.tiles), axes) is not None for s in shardings)

    meshes = [tuple((f"m{i}", f) for i, f in enumerate(order)) for order in _orders(count)]
    return max(meshes, key=expressible)


def fewest_axes(meshes: Iterable[MeshAxes], shardings: Collection[Sharding]) -> MeshAxes | None:
    """Axes of a mesh, those of the first of ``meshes`` in which all ``shardings`` can be told.

    What the compiler chooses follows whole axes: the fewer there are, the more of it can be told
    over a mesh that the user knows. They keep their names, which compiled text then tells.

    >>> fewest_axes([(("x", 2), ("one", 1), ("y", 4))], [Sharding(range(8), (2,))])
    (('x', 2), ('y', 4))
    >>> fewest_axes([(("x", 2), ("y", 4))], [Sharding(range(8), (4,))]) is None
    True
    """
    for mesh in meshes:
        axes = tuple((name, size) for name, size in mesh if size > 1)
        if all(axes_of(s, len(s.tiles), axes) is not None for s in shardings):
            return axes
    return None


def with_devices_counted_as(sharding: Sharding, devices: Sequence[Any]) -> Sharding:
    """The same parts on the same devices, which are counted in the order of ``devices``.

    >>> with_devices_counted_as(Sharding("abcd", (4,)), tuple("dcba")).assignment
    (3, 2, 1, 0)
    """
    if sharding.device_list == devices:
        return sharding.plain
    position = {device: i for i, device in enumerate(devices)}
    places = sharding.assignment or range(len(sharding.device_list))
    return Sharding(devices, sharding.tiles, [position[sharding.device_list[p]] for p in places])


def nearest(sharding: Sharding, ndim: int, devices: Sequence[Any], mesh_axes: MeshAxes) -> Layout:
    """``sharding`` in terms of a mesh of its ``devices`` with axes of prime size.

    Where no layout puts the same parts on the same devices, one that cuts as many parts.

    >>> nearest(Sharding("abcd", (4,), (1, 0, 2, 3)), 2, tuple("abcd"), (("x", 2), ("y", 2)))
    (('x', 'y'), ())
    """
    exact = axes_of(with_devices_counted_as(sharding, devices), ndim, mesh_axes)
    return _divided(sharding.tiles, ndim, mesh_axes) if exact is None else exact


def _divided(tiles: Sequence[int], ndim: int, mesh_axes: MeshAxes) -> Layout:
    free = list(mesh_axes)
    layout: list[tuple[str, ...]] = []
    for parts in (*tiles, *(1,) * (ndim - len(tiles))):
        used = [_taken(free, factor) for factor in primes(parts)]
        layout.append(tuple(used))
    return tuple(layout)


def _taken(free: list[tuple[str, int]], size: int) -> str:
    """The name of the first axis of that size, taken out of those that are ``free``."""
    axis = next(axis for axis in free if axis[1] == size)
    free.remove(axis)
    return axis[0]


def primes(n: int) -> tuple[int, ...]:
    """The prime factors of ``n``, ascending."""
    factors: list[int] = []
    p = 2
    while n > 1:
        if n % p:
            p += 1
        else:
            factors.append(p)
            n //= p
    return tuple(factors)


@memoized(64)
def _orders(count: int) -> tuple[tuple[int, ...], ...]:
    """The distinct orders of the prime factors of ``count``, the ascending one first."""
    orders: dict[tuple[int, ...], None] = {(): None}
    for p in primes(count):
        orders = {(*o[:i], p, *o[i:]): None for o in orders for i in range(len(o) + 1)}
    return tuple(sorted(orders))
