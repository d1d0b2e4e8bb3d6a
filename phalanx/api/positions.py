"""Over which axes, and on which devices, a call of ``shard_map`` runs."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from phalanx.api import aot
from phalanx.api.enclosing import enclosing, inside
from phalanx.api.meshes import get_mesh, make_mesh
from phalanx.base.config import config, settings
from phalanx.base.errors import coded, suggest_axis
from phalanx.base.source import user_location
from phalanx.core import axes
from phalanx.core.layouts import Axes
from phalanx.core.manual import Typed, user_axis_name
from phalanx.core.types import ArrayType
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import NO_MESH, AbstractMesh, AnyMesh, AxisType, Mesh
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.shardings_of_types import spec_of


class Positions(Struct, frozen=True):
    """The ``axes`` of ``mesh`` that a call takes: along the others the compiler decides."""

    axes: Axes
    mesh: AnyMesh

    def on_devices(self) -> Positions:
        """The same over devices: where the mesh has none, the first ones."""
        mesh = self.mesh
        if isinstance(mesh, Mesh):
            return self
        return Positions(self.axes, make_mesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types))


_outer: ContextVar[Positions | None] = ContextVar("enclosing shard_map", default=None)


def positions_of(
    mesh: AnyMesh | None, names: frozenset[str], typed: bool, leaves: Sequence[Any], who: str
) -> Positions:
    """What a call takes on ``leaves``: the axes ``names`` of ``mesh``, all if there are none.

    Inside another ``shard_map``, or a ``pmap`` over a mesh, these are axes that are left.

    Args:
        mesh: None is the current one.
        names: the user's ``axis_names``.
        typed: whether types are to know along which of the axes a value varies.
        leaves: the arguments.
        who: the function, for messages.

    Raises:
        ValueError: there is no mesh, it lacks one of the names, or the axes or devices are taken.
    """
    outer = _outer.get()
    if outer is None and enclosing() is not None:
        raise ValueError(
            f"{who}: shard_map cannot run inside {enclosing()}, which divides the devices already, "
            f"at {user_location()}; give the shard_map an axis more in place of the pmap, or the "
            "pmap a mesh, of which the shard_map can take the axes that are left"
        )
    current = _resolve_mesh(mesh, leaves, who) if outer is None else _same(mesh, outer, who)
    missing = sorted(names - set(current.axis_names))
    if missing:
        raise ValueError(
            f"{who}: axis_names has {missing[0]!r}, which is no axis of {current}, at "
            f"{user_location()}. {suggest_axis(missing[0], current.axis_names)}"
        )
    taken = frozenset([user_axis_name(a) for a, _ in _outer_axes()])
    axis_names = names or frozenset(current.axis_names) - taken
    if not axis_names or axis_names & taken:
        raise ValueError(
            f"{who}: the axes {sorted(axis_names & taken) or list(current.axis_names)} are taken "
            f"by {enclosing()} around it, at {user_location()}; it can take axes that are left"
        )
    in_types = [
        size > 1 or not config.remove_size_one_mesh_axis_from_type for _, size in current.axes
    ]
    axes_and_typed = zip(current.axes, in_types, strict=True)
    taking = [
        (Typed(n) if typed and t else n, size) for (n, size), t in axes_and_typed if n in axis_names
    ]
    return Positions(tuple(taking), current)


def _same(mesh: AnyMesh | None, outer: Positions, who: str) -> AnyMesh:
    """The mesh of ``outer``, which is the one that a call inside has, too."""
    if mesh is not None and mesh.axes != outer.mesh.axes:
        raise ValueError(
            f"{who}: its mesh is {mesh}, but it lies inside {enclosing()} over {outer.mesh}, at "
            f"{user_location()}; both must be over the same mesh, each over axes of its own"
        )
    return outer.mesh


def _resolve_mesh(mesh: AnyMesh | None, leaves: Sequence[Any], who: str) -> AnyMesh:
    """``mesh``, or the mesh of that shape that is meant: the current one, or that of an argument.

    Where none is known, the devices are those over which the program turns out to run.
    """
    current = settings().mesh or NO_MESH
    chosen = current if mesh is None else mesh
    if chosen.empty:
        problem = "there is no mesh" if mesh is None else "mesh= is empty"
        error = ValueError(
            f"{who}: {problem}, at {user_location()}; give mesh=, or run it in "
            "`with phalanx.set_mesh(mesh):`"
        )
        raise coded(error, "no mesh" if mesh is None else "empty mesh")
    if isinstance(chosen, Mesh):
        return chosen
    shardings = map(aot.sharding_of, leaves)
    for candidate in [current, *(s.mesh for s in shardings if isinstance(s, NamedSharding))]:
        if candidate.axes == chosen.axes and candidate.has_devices:
            return candidate
    return chosen


@contextmanager
def running_at(positions: Positions, who: str) -> Generator[None]:
    """A block in which a function runs at ``positions``: their axes are in scope, their mesh is the
    current one."""
    token = _outer.set(Positions((*_outer_axes(), *positions.axes), positions.mesh))
    try:
        with inside(who), axes.binding(*positions.axes), config.override(mesh=positions.mesh):
            yield
    finally:
        _outer.reset(token)


def get_abstract_mesh() -> AbstractMesh:
    """The current mesh without its devices, as traced functions see it.

    Inside ``shard_map`` that is its mesh, whose axes are of type Manual where they are taken.

    Returns:
        A mesh without devices, an ``AbstractMesh``; empty if none is set.

    >>> import phalanx
    >>> mesh = phalanx.make_mesh((1, 1), ("data", "model"))
    >>> def f(x):
    ...     print(get_abstract_mesh().manual_axes)
    ...     return x
    >>> data = phalanx.P("data")
    >>> f = phalanx.shard_map(f, mesh=mesh, in_specs=data, out_specs=data, axis_names={"data"})
    >>> f(phalanx.numpy.zeros(1)).shape
    ('data',)
    (1,)
    """
    taken = {user_axis_name(axis): AxisType.Manual for axis, _ in _outer_axes()}
    outer = _outer.get()
    mesh = (settings().mesh or NO_MESH) if outer is None else outer.mesh
    return mesh.abstract_mesh.update_axis_types(taken)


@contextmanager
def use_abstract_mesh(mesh: AnyMesh) -> Generator[None]:
    """Let ``mesh`` be the one that is meant in a block, over devices that there are.

    These are those of the mesh that is set, if that has the same axes, else the first ones. So a
    block can give the axes of a mesh other types. Where there are too few, functions can be traced
    and lowered for other platforms, but not run.

    Args:
        mesh: a mesh; an empty one for none.

    Returns:
        A context manager, to be used in a ``with`` statement.

    Raises:
        TypeError: ``mesh`` is none.

    >>> import phalanx
    >>> mesh = AbstractMesh((1,), ("data",), AxisType.Explicit)
    >>> with phalanx.sharding.use_abstract_mesh(mesh):
    ...     phalanx.get_mesh().explicit_axes
    ('data',)
    """
    if not isinstance(mesh, AnyMesh):
        raise TypeError(
            f"use_abstract_mesh: a mesh is needed, got {mesh!r}, at {user_location()}; "
            "AbstractMesh(sizes, names) makes one"
        )
    with config.override(mesh=_over_devices(mesh)):
        yield


def _over_devices(mesh: AnyMesh) -> AnyMesh | None:
    """``mesh`` over the devices of the one that is set, if it has the same axes."""
    if mesh.empty or isinstance(mesh, Mesh):
        return mesh if isinstance(mesh, Mesh) else None
    current = get_mesh()
    if current.axes == mesh.axes:
        return current.update(axis_types=mesh.axis_types)
    if mesh.size > len(backend().devices()):
        return mesh
    return make_mesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


def sharding_of_type(type: ArrayType) -> NamedSharding:
    """What ``type`` says, over its mesh or the one that is meant.

    Args:
        type: the type of an array.
    """
    mesh: Any = get_abstract_mesh()
    own = type.spec and type.spec.mesh
    if own is not None and own.shape != mesh.shape:
        mesh = own
    return NamedSharding(mesh, spec_of(type))


def _outer_axes() -> Axes:
    outer = _outer.get()
    return () if outer is None else outer.axes
