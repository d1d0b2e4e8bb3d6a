"""Shardings and types say the same of axes of type Explicit: from one to the other."""

from __future__ import annotations

from phalanx.base.errors import ShardingTypeError
from phalanx.base.recent import memoized
from phalanx.base.source import user_location
from phalanx.core.layouts import OpenLayout
from phalanx.core.mesh_spec import MeshSpec, both
from phalanx.core.types import ArrayType
from phalanx.spmd.mesh import AbstractMesh, AnyMesh, AxisType
from phalanx.spmd.named import NamedSharding, PartitionSpec
from phalanx.spmd.sharding import Sharding

P = PartitionSpec


def mesh_spec_of(sharding: Sharding, ndim: int, now: MeshSpec | None = None) -> MeshSpec | None:
    """What types say of an array of ``ndim`` dimensions that lies as ``sharding`` says.

    Args:
        sharding: what is asked, or told.
        ndim: how many dimensions there are.
        now: how the array lies in dimensions that are left open, and along Manual axes.
    """
    if not isinstance(sharding, NamedSharding):
        return now
    mesh = sharding.mesh
    _refuse_sums(sharding)
    if not mesh.explicit_axes:
        return now and now.manual
    spec = sharding.spec
    opened: OpenLayout = (*spec.open_layout, *((),) * (ndim - len(spec)))
    current_layout = now.layout if now is not None else ((),) * ndim
    layout = [
        current_layout[d] if names is None else [a for a in names if a in mesh.explicit_axes]
        for d, names in enumerate(opened)
    ]
    spec_of_type = MeshSpec.of(_without_devices(mesh), layout, spec.unreduced, spec.reduced)
    return both(spec_of_type, now)


def _refuse_sums(sharding: NamedSharding) -> None:
    """Raise ShardingTypeError if a sum is to be left along an axis along which no type tells it."""
    spec, mesh = sharding.spec, sharding.mesh
    silent = sorted((spec.unreduced | spec.reduced).difference(mesh.explicit_axes))
    if silent:
        raise ShardingTypeError(
            f"{spec} is about a sum over {silent[0]!r}, at {user_location()}, which types tell "
            f"along axes of type Explicit alone, and in {mesh} it is of type "
            f"{mesh.axis_types[mesh.axis_names.index(silent[0])].name}; make the mesh with "
            "axis_types=AxisType.Explicit for it"
        )


def type_of(type: ArrayType, sharding: Sharding) -> ArrayType:
    """``type``, of an array with data that lies as ``sharding``."""
    mesh_spec = mesh_spec_of(sharding, type.ndim) if _is_even(sharding, type.shape) else None
    return type if type.spec is mesh_spec else type.update(spec=mesh_spec)


def _is_even(sharding: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether all parts of an array of ``shape`` are as long."""
    if not isinstance(sharding, NamedSharding) or sharding.refusal(shape):
        return False
    return not any([b.padding for b in sharding.blocks(shape)])


@memoized(64)
def _without_devices(mesh: AnyMesh) -> AbstractMesh:
    return mesh.abstract_mesh


@memoized(1024)
def sharding_in_type(mesh_spec: MeshSpec) -> NamedSharding:
    """The sharding that ``mesh_spec`` is of; dimensions are open where the compiler may cut."""
    mesh: AbstractMesh = mesh_spec.mesh  # type: ignore[assignment]
    free = AxisType.Auto in mesh.axis_types
    layout = [names or (None if free else ()) for names in mesh_spec.layout]
    spec = P(unreduced=mesh_spec.unreduced, reduced=mesh_spec.reduced).with_layout(layout)
    return NamedSharding(mesh, spec)  # type: ignore[arg-type]


def spec_of(type: ArrayType) -> PartitionSpec:
    """The spec of ``type``, with an entry for every dimension."""
    entries = [names or None for names in type.layout]
    mesh_spec = type.spec and type.spec.explicit
    if mesh_spec is None:
        return P(*entries)
    return P(*entries, unreduced=mesh_spec.unreduced, reduced=mesh_spec.reduced)
