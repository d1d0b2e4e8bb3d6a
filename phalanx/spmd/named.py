"""Shardings as users write them: the axes of a mesh that split each dimension of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from phalanx.core.blocks import Blocks
from phalanx.core.region import Layout
from phalanx.spmd.layout import from_axes
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.sharding import Sharding


class PartitionSpec(tuple[str | tuple[str, ...] | None, ...]):
    """Per dimension of an array: the mesh axis or axes that split it, or None.

    >>> PartitionSpec("data", None, ("x", "y"))
    PartitionSpec('data', None, ('x', 'y'))
    """

    __slots__ = ()

    def __new__(cls, *entries: str | Sequence[str] | None) -> PartitionSpec:
        return super().__new__(cls, (_entry(e) for e in entries))

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, tuple(self)

    @property
    def layout(self) -> Layout:
        """Per dimension the tuple of axis names."""
        return tuple(() if e is None else (e,) if isinstance(e, str) else e for e in self)


P = PartitionSpec


def _entry(entry: object) -> str | tuple[str, ...] | None:
    if entry is None or isinstance(entry, str):
        return entry
    listed = cast("Sequence[object]", entry) if isinstance(entry, (tuple, list)) else (entry,)
    names = tuple(e for e in listed if isinstance(e, str))
    if len(names) == len(listed):
        return names if len(names) != 1 else names[0]
    raise TypeError(
        "PartitionSpec: an entry must be None, the name of a mesh axis or a tuple of names, "
        f"got {entry!r}"
    )


class NamedSharding(Sharding):
    """``spec`` says which axes of ``mesh`` split which dimensions; other axes hold copies.

    >>> mesh = Mesh([[0, 1], [2, 3]], ("data", "model"))
    >>> NamedSharding(mesh, PartitionSpec("model")).assignment
    (0, 2, 1, 3)
    """

    __slots__ = ("_plain", "mesh", "spec")

    mesh: Mesh
    spec: PartitionSpec
    _plain: Sharding

    def __new__(cls, mesh: Mesh, spec: PartitionSpec) -> NamedSharding:  # type: ignore[misc]
        _check(mesh, spec)
        plain = from_axes(mesh.flat, mesh.axes, spec.layout, "NamedSharding")
        made = object.__new__(cls)
        made.devices, made.tiles, made.assignment = plain.devices, plain.tiles, plain.assignment
        made.committed, made._hash, made._tile_at = True, plain._hash, plain._tile_at
        made.local_positions = plain.local_positions
        made._plain, made.mesh, made.spec = plain, mesh, spec
        return made

    @property
    def plain(self) -> Sharding:
        return self._plain

    def commit(self) -> Sharding:
        return self

    def blocks(self, shape: Sequence[int]) -> tuple[Blocks, ...]:
        shape = tuple(shape)
        if len(self.spec) > len(shape):
            raise ValueError(
                f"{self.spec} has {len(self.spec)} entries, but an array of shape {shape} "
                f"has {len(shape)} dimensions"
            )
        return self._plain.blocks(shape)

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"


def _check(mesh: object, spec: object) -> None:
    if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
        raise TypeError(
            "NamedSharding: needs a Mesh and a PartitionSpec, "
            f"got {type(mesh).__name__} and {type(spec).__name__}"
        )
