"""Shardings that leave dimensions open: what a program asks of a value inside."""

# In whose name specs are checked is no affair of users.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from phalanx.base.config import settings
from phalanx.base.errors import NoMesh, coded
from phalanx.base.source import user_location
from phalanx.spmd.layout import axes_of, with_devices_counted_as
from phalanx.spmd.mesh import NO_MESH, Mesh, mesh_over
from phalanx.spmd.named import NamedSharding, PartitionSpec, unreduced_along
from phalanx.spmd.sharding import Sharding

P = PartitionSpec


def sharding_for(requested: Sharding | PartitionSpec, who: str, later: bool = False) -> Sharding:
    """``requested``; a spec alone, or over a mesh without devices, is about the mesh that is set.

    ``later``: where none with such axes is set, a mesh without devices is over those of the program
    or the array that it turns out to be about (``over``).

    Raises:
        NoMesh: there is none, or a mesh without devices has other axes.
        ValueError: a spec names an axis that it lacks, or one twice.
    """
    mesh = settings().mesh or NO_MESH
    if isinstance(requested, PartitionSpec):
        if mesh.empty:
            error = NoMesh(
                f"{who}: {requested} stands alone, and there is no mesh whose axes it could name; "
                "set one with phalanx.set_mesh(mesh), or give NamedSharding(mesh, spec), at "
                f"{user_location()}"
            )
            raise coded(error, "spec without mesh", who=who)
        requested = NamedSharding._asked(mesh, requested, who)
    if not is_abstract(requested):
        return requested
    if mesh.has_devices and mesh.axes == requested.mesh.axes:
        return requested.update(mesh=mesh)
    if later:
        return requested
    raise NoMesh(
        f"{who}: {requested} has no devices, and no mesh with its axes is set, at "
        f"{user_location()}; set one with phalanx.set_mesh(mesh), or lower alone, for a platform "
        "that need not be here: f.trace(x).lower(lowering_platforms=('tpu',))"
    )


def is_abstract(sharding: Sharding) -> TypeGuard[NamedSharding]:
    """Whether ``sharding`` is over a mesh without devices."""
    return isinstance(sharding, NamedSharding) and not sharding.mesh.has_devices


def over(sharding: Sharding, devices: Sequence[Any]) -> Sharding:
    """``sharding``; over a grid of ``devices`` if it has none, and there are as many as it needs.

    >>> over(NamedSharding(Mesh([0, 1], "x").abstract_mesh, P("x")), ("a", "b")).device_list
    ('a', 'b')
    """
    if not is_abstract(sharding) or sharding.mesh.size != len(devices):
        return sharding
    return sharding.update(mesh=mesh_over(sharding.mesh, devices))


def resolve_devices(sharding: Sharding, devices: Sequence[Any], who: str) -> Sharding:
    """The same for a value that must be on devices.

    Raises:
        NoMesh: it needs more or fewer than there are.
    """
    resolved = over(sharding, devices)
    if not is_abstract(resolved):
        return resolved
    raise NoMesh(
        f"{who}: {resolved} has no devices, and no mesh with its axes is set; it needs "
        f"{resolved.mesh.size} devices, and what it is about lies on {len(devices)}. Set a mesh "
        "with phalanx.set_mesh(mesh), or place the arguments over one"
    )


def open_dims(sharding: Sharding) -> tuple[int, ...]:
    """The dimensions that ``sharding`` leaves to the compiler."""
    if not isinstance(sharding, NamedSharding):
        return ()
    return tuple(d for d, names in enumerate(sharding.spec.open_layout) if names is None)


def cutting(sharding: Sharding) -> tuple[str, ...]:
    """The axes of a mesh that cut dimensions."""
    if not isinstance(sharding, NamedSharding):
        return ()
    return tuple(name for names in sharding.spec.open_layout for name in names or ())


def without_open_dims(sharding: Sharding) -> Sharding:
    """``sharding``, where dimensions that it leaves open are whole.

    >>> without_open_dims(NamedSharding(Mesh([0, 1], "x"), P(P.UNCONSTRAINED, "x"))).spec
    P(None, 'x')
    """
    if not isinstance(sharding, NamedSharding) or not open_dims(sharding):
        return sharding
    layout = [names or () for names in sharding.spec.open_layout]
    return sharding.update(spec=sharding.spec.with_layout(layout)).in_memory(None)


def resolve_open_dims(sharding: Sharding, now: Sharding, ndim: int) -> Sharding:
    """``sharding`` for an array that lies as ``now``, which it keeps in dimensions left open.

    >>> mesh = Mesh([[0, 1], [2, 3]], ("x", "y"))
    >>> now = NamedSharding(mesh, P("x", "y"))
    >>> resolve_open_dims(NamedSharding(mesh, P(P.UNCONSTRAINED)), now, 2).spec
    P('x')
    """
    if not isinstance(sharding, NamedSharding) or not open_dims(sharding):
        return sharding
    mesh, layout = sharding.mesh, sharding.spec.open_layout
    there = None
    if now.is_over(sharding.device_list):
        there = axes_of(with_devices_counted_as(now.plain, mesh.flat), ndim, mesh.axes)
    used = {name for names in layout for name in names or ()}

    def current_axes(dim: int) -> tuple[str, ...]:
        return () if there is None or used.intersection(there[dim]) else there[dim]

    full = [current_axes(d) if names is None else names for d, names in enumerate(layout)]
    return sharding.update(spec=sharding.spec.with_layout(full))


def sharding_of_lanes(sharding: Sharding, dim: int, axes: Sequence[str] | None = None) -> Sharding:
    """``sharding`` for arrays with a further dimension ``dim``, cut by ``axes``; None: left open.

    Raises:
        ValueError: it is over no mesh whose axes could be meant, or one of them cuts it already.

    >>> sharding_of_lanes(NamedSharding(Mesh([0, 1], "x"), P("x")), 1).spec
    P('x', UNCONSTRAINED)
    """
    if not isinstance(sharding, NamedSharding):
        if axes:
            error = ValueError(
                f"vmap: spmd_axis_name gives the axes {tuple(axes)} of a mesh to the mapped "
                f"dimension, and a value inside is to lie as {sharding}, which is over none, at "
                f"{user_location()}; give NamedSharding(mesh, spec)"
            )
            raise coded(error, "lanes over no mesh", sharding=type(sharding).__name__)
        if len(sharding.device_list) == 1:  # all lanes lie there
            return sharding
    named = as_named(sharding)
    twice = next((name for name in axes or () if name in cutting(named)), None)
    if twice is not None:
        raise ValueError(
            f"vmap: spmd_axis_name gives the axis {twice!r} to the mapped dimension, and "
            f"{named.spec} cuts another by it, at {user_location()}; an axis cuts one dimension"
        )
    entries = [*named.spec, *[None] * (dim - len(named.spec))]
    entries.insert(dim, P.UNCONSTRAINED if axes is None else tuple(axes))
    return NamedSharding(named.mesh, named.spec.update(partitions=entries))


def stack_partials(sharding: Sharding) -> Sharding:
    """The sharding of the summands of an unreduced array, stacked along one dimension, which is cut
    by the axes along which the array is unreduced; any other sharding as it is.

    >>> stack_partials(NamedSharding(Mesh([0, 1], "x"), P(unreduced={"x"}))).spec
    P('x')
    """
    along = unreduced_along(sharding)
    if not along or not isinstance(sharding, NamedSharding):
        return sharding
    names = tuple([name for name in sharding.mesh.axis_names if name in along])
    return NamedSharding(sharding.mesh, P(names))


def as_named(sharding: Sharding) -> NamedSharding:
    """``sharding`` over a mesh of its own, if it is over none.

    >>> as_named(Sharding("abcd", (1, 2), (0, 2, 1, 3)))
    NamedSharding(mesh=Mesh('0': 1, '1': 2, 'copies': 2), spec=P('0', '1'))
    """
    if isinstance(sharding, NamedSharding):
        return sharding
    grid = np.empty(len(sharding.device_list), object)
    grid[:] = [sharding.device_list[p] for p in sharding.assignment or range(grid.size)]
    names = [str(d) for d in range(len(sharding.tiles))]
    mesh = Mesh(grid.reshape(*sharding.tiles, sharding.copies), (*names, "copies"))
    return NamedSharding(mesh, P(*names))
