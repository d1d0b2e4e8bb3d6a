"""``shard_map``, in the place where it used to be, with the keywords that it had there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Set
from typing import Any

from phalanx.api import shard_map as current
from phalanx.base.boundary import bound
from phalanx.spmd.mesh import AnyMesh


def shard_map(
    f: Callable[..., Any],
    mesh: AnyMesh,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: Set[str] = frozenset(),
) -> Callable[..., Any]:
    """``phalanx.shard_map`` as it was called before.

    Args:
        f: a function of trees of arrays.
        mesh: the devices and their axes.
        in_specs: how the arguments are cut.
        out_specs: how the results are joined.
        check_rep: ``check_vma`` of today.
        auto: the axes of the mesh that are not among ``axis_names`` of today.

    >>> import phalanx, phalanx.numpy as jnp
    >>> mesh = phalanx.make_mesh((1,), ("data",))
    >>> shard_map(jnp.sin, mesh, phalanx.P("data"), phalanx.P("data"))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    return current.shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names=frozenset(mesh.axis_names) - auto,
        check_vma=check_rep,
    )


__all__ = ["shard_map"]

bound(sys.modules[__name__])
