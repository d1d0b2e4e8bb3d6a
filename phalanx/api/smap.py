"""``smap``: ``shard_map`` along one axis of the mesh, with axes of arrays as ``vmap`` has them."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from phalanx.api.arguments import LeafNames, check_callable, wrap
from phalanx.api.inferred import Infer
from phalanx.api.positions import get_abstract_mesh
from phalanx.api.shard_map import shard_map
from phalanx.api.transformed import P, R
from phalanx.api.vmap import input_dims, is_none
from phalanx.base import tree
from phalanx.base.errors import ArgumentError, suggest_axis
from phalanx.base.source import name_of, user_location
from phalanx.spmd.named import PartitionSpec


@overload
def smap(
    f: Callable[P, R], /, *, in_axes: Any = ..., out_axes: Any, axis_name: str
) -> Callable[P, R]: ...
@overload
def smap(
    f: None = None, /, *, in_axes: Any = ..., out_axes: Any, axis_name: str
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: str
) -> Any:
    """``f``, which says what devices do with blocks, as a function of whole arrays: one mesh axis.

    Along the other axes of the current mesh arrays lie as the compiler decides, or an ``smap``
    inside or outside of this one says.

    Args:
        f: a function of trees of arrays. Without it, a decorator is returned.
        in_axes: which axis of each argument is cut into blocks, one for each position: an integer,
            None for an argument that all positions get whole, or a tuple of trees of them. If not
            given, blocks are as the arguments lie, as for ``shard_map`` without ``in_specs``.
        out_axes: along which axis the blocks of each result are joined, counted from the front;
            None for a result that is the same everywhere.
        axis_name: the axis of the current mesh, see ``set_mesh``, by which collectives in ``f``
            refer to the positions.

    Returns:
        A function of positional arguments.

    Raises:
        TypeError: an axis is no integer, ``axis_name`` is no string, or ``in_axes`` are not given
            and arguments do not tell.
        TreeError: ``in_axes`` or ``out_axes`` do not fit the tree.
        ValueError: there is no mesh, or it has no such axis; an argument has no such axis, or it
            cannot be cut into that many blocks; an entry of ``out_axes`` is negative.
        ReplicationError: a result with None in ``out_axes`` may differ between positions.

    >>> import phalanx, phalanx.numpy as jnp
    >>> total = phalanx.smap(
    ...     lambda x: phalanx.lax.psum(x.sum(), "data"), in_axes=0, out_axes=None, axis_name="data"
    ... )
    >>> with phalanx.set_mesh(phalanx.make_mesh((1,), ("data",))):
    ...     total(jnp.arange(4.0))
    Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    check_callable(f, "smap")
    if not isinstance(axis_name, str):
        raise TypeError(
            f"smap: axis_name must be the name of one axis, got {axis_name!r}; "
            "shard_map takes several, axis_names={...}"
        )
    fun, who = f, f"smap({name_of(f)})"
    joined = tree.map(lambda d: _joined_at(d, axis_name, who), out_axes, is_leaf=is_none)

    def mapped(*args: Any) -> Any:
        _check_axis(axis_name, who)
        if in_axes is Infer:
            _check_named(axis_name, who)
        specs = Infer if in_axes is Infer else _cut_at(in_axes, args, fun, axis_name, who)
        return shard_map(fun, in_specs=specs, out_specs=joined, axis_names={axis_name})(*args)

    return wrap(mapped, fun)


def _check_axis(axis_name: str, who: str) -> None:
    """Raise ValueError if the current mesh has no such axis."""
    mesh = get_abstract_mesh()
    if mesh.empty:
        raise ValueError(
            f"{who}: there is no mesh, at {user_location()}; run it in "
            "`with phalanx.set_mesh(mesh):`"
        )
    if axis_name not in mesh.axis_names:
        raise ValueError(
            f"{who}: axis_name is {axis_name!r}, which is no axis of {mesh}, at "
            f"{user_location()}. {suggest_axis(axis_name, mesh.axis_names)}"
        )


def _check_named(axis_name: str, who: str) -> None:
    """Raise ArgumentError if types of arguments do not tell what ``in_axes`` would say."""
    mesh = get_abstract_mesh()
    if axis_name in set(mesh.axis_names) - set(mesh.explicit_axes):
        raise ArgumentError(
            f"{who}: in_axes was not specified, at {user_location()}, and arguments tell it only "
            f"along axes of type Explicit, which {axis_name!r} of {mesh} is not. Give in_axes, an "
            "integer or None for each argument"
        )


def _cut_at(
    in_axes: Any, args: tuple[Any, ...], fun: Callable[..., Any], axis_name: str, who: str
) -> Any:
    """The specs of ``args``, which ``in_axes`` say by the numbers of dimensions."""
    names = LeafNames(fun, args, {}, range(len(args)))
    dims = input_dims(in_axes, args, {}, names, who)
    return tree.structure(args).unflatten([_spec(d, axis_name) for d in dims])


def _joined_at(dim: Any, axis_name: str, who: str) -> PartitionSpec:
    if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        raise TypeError(f"{who}: an entry of out_axes must be an integer or None, got {dim!r}")
    if dim is not None and dim < 0:
        raise ValueError(
            f"{who}: out_axes are counted from the front, as results are not known yet, got {dim}"
        )
    return _spec(dim, axis_name)


def _spec(dim: int | None, axis_name: str) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*[None] * int(dim), axis_name)
