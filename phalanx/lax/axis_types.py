"""Parts of programs in which axes of a mesh have another type: Auto, or Explicit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from phalanx.base import tree
from phalanx.base.config import config, settings
from phalanx.base.errors import NoMesh, suggest_axis
from phalanx.base.source import name_of, user_location
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.types import Array
from phalanx.lax.layout import reshard
from phalanx.primitives.resharding import resharded, without_spec
from phalanx.spmd.mesh import AxisType, Mesh
from phalanx.spmd.named import NamedSharding


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: Any = None,
) -> Any:
    """``f`` as a function in which the compiler decides how values lie, along ``axes``.

    Args:
        f: a function of trees of arrays. Without it, a decorator is returned.
        axes: the name of an axis of the mesh that is set, or several; all if not given.
        out_sharding: how the results lie: a spec or a sharding, or a tree of them that is a prefix
            of the results. It may be given where the function is called.

    Returns:
        A function of the same arguments, whose results lie as ``out_sharding`` says.

    Raises:
        NoMesh: no mesh is set, and ``out_sharding`` has none.
        ValueError: the mesh has no axis of that name, or nothing says how the results lie.

    >>> import phalanx, phalanx.numpy as jnp
    >>> from phalanx.sharding import AxisType, auto_axes
    >>> mesh = phalanx.make_mesh((1,), ("data",), AxisType.Explicit)
    >>> with phalanx.set_mesh(mesh):
    ...     x = phalanx.device_put(jnp.ones((2, 3)), phalanx.P("data"))
    ...     gram = auto_axes(lambda x: x.T @ x, out_sharding=phalanx.P())
    ...     phalanx.typeof(gram(x))
    f32[3,3]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    function, who = f, f"auto_axes({name_of(f)})"

    @functools.wraps(f)
    def with_auto_axes(*args: Any, out_sharding: Any = out_sharding, **kwargs: Any) -> Any:
        if out_sharding is None:
            raise ValueError(
                f"{who}: nothing says how the results are to lie, at {user_location()}; give "
                "out_sharding, a PartitionSpec such as phalanx.P('data')"
            )
        mesh = _changed(axes, AxisType.Auto, who, out_sharding)
        with config.override(mesh=mesh):
            args, kwargs = tree.map(lambda x: _seen_over(x, mesh), (args, kwargs))
            results = function(*args, **kwargs)
        return reshard(results, out_sharding)

    return with_auto_axes


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: Any = None,
) -> Any:
    """``f`` as a function in which types say how values lie along ``axes``, which are Auto outside.

    Args:
        f: a function of trees of arrays. Without it, a decorator is returned.
        axes: the name of an axis of the mesh that is set, or several; all if not given.
        in_sharding: how the arguments lie: a spec or a sharding, or a tuple of trees of them, one
            for each argument. It may be given where the function is called.

    Returns:
        A function of the same positional arguments.

    Raises:
        NoMesh: no mesh is set.
        ValueError: the mesh has no axis of that name, or nothing says how the arguments lie.

    >>> import phalanx, phalanx.numpy as jnp
    >>> from phalanx.sharding import explicit_axes
    >>> @explicit_axes(in_sharding=phalanx.P("data"))
    ... def show(x):
    ...     print(phalanx.typeof(x))
    ...     return x
    >>> with phalanx.set_mesh(phalanx.make_mesh((1,), ("data",))):
    ...     x = show(jnp.ones((2, 3)))
    f32[2@data,3]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    function, who = f, f"explicit_axes({name_of(f)})"

    @functools.wraps(f)
    def with_explicit_axes(*args: Any, in_sharding: Any = in_sharding) -> Any:
        if args and in_sharding is None:
            raise ValueError(
                f"{who}: nothing says how the arguments lie, at {user_location()}; give "
                "in_sharding, a PartitionSpec such as phalanx.P('data')"
            )
        outer = settings().mesh
        with config.override(mesh=_changed(axes, AxisType.Explicit, who)):
            results = function(*(reshard(args, in_sharding) if args else ()))
        return tree.map(lambda x: _seen_over(x, outer), results)

    return with_explicit_axes


def _changed(
    axes: str | tuple[str, ...] | None, kind: AxisType, who: str, asked: Any = None
) -> Mesh:
    """The mesh that is set, or that of what is ``asked``, whose ``axes`` are of another kind."""
    named = [s.mesh for s in tree.leaves(asked) if isinstance(s, NamedSharding)]
    mesh = settings().mesh or next(iter(named), None)
    if mesh is None or mesh.empty:
        raise NoMesh(
            f"{who}: no mesh is set whose axes it could change, at {user_location()}; set one "
            "with phalanx.set_mesh(mesh)"
        )
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(
                f"{who}: axes has {name!r}, which is no axis of {mesh}, at {user_location()}. "
                f"{suggest_axis(name, mesh.axis_names)}"
            )
    return mesh.update_axis_types(dict.fromkeys(names, kind))


def _seen_over(x: Any, mesh: Mesh) -> Any:
    """``x`` as its type tells it where ``mesh`` says which axes are Explicit."""
    if not isinstance(x, Array) or x.aval.spec is None:
        return x
    if not mesh.explicit_axes:
        return without_spec(x)
    left = x.aval.spec.without_axes(mesh.auto_axes)
    return resharded(x, left and MeshSpec.of(mesh.abstract_mesh, left.layout))
