"""Shardings as users write them: the axes of a mesh that split each dimension of an array."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from typing import Any, ClassVar, Final, Self, cast

import numpy as np

from phalanx.base import dialect
from phalanx.base.errors import coded, suggest_axis
from phalanx.base.recent import InternTable, memoized
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks, blocks_of
from phalanx.core.layouts import Layout, OpenLayout, trimmed
from phalanx.core.mesh_spec import spec_text
from phalanx.spmd.layout import from_axes
from phalanx.spmd.mesh import AnyMesh, Mesh, row
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.sharding_spec import ShardingSpec, sharding_spec_of


class _Unconstrained:
    """An entry of a spec that leaves its dimension to the compiler."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"


_UNCONSTRAINED: Final = _Unconstrained()
_NO_AXES: Final = frozenset[str]()

Entry = str | tuple[str, ...] | _Unconstrained | None


class PartitionSpec(tuple[Entry, ...]):
    """A partition spec: per dimension of an array, the mesh axis or axes that split it, or None.

    ``P.UNCONSTRAINED`` leaves a dimension to the compiler, where there is one to decide.

    Along axes of type Explicit a value may be a sum that is still to be taken: it is *unreduced*
    along them, and each device has a part of the sum, of the shape of the whole. A value that is
    *reduced* along axes is whole at all their positions, and its cotangent unreduced.

    Args:
        entries: for each dimension None, the name of an axis of the mesh, or a tuple of names.
        unreduced: a set of axes over which the sum is still to be taken.
        reduced: a set of axes over which that of the cotangent is.

    Raises:
        TypeError: an entry is none of these, or what is no set is given for one.
        ValueError: an axis is in two places.

    >>> PartitionSpec("data", None, ("x", "y"))
    P('data', None, ('x', 'y'))
    >>> P("data") + P("model")
    P('data', 'model')
    >>> P("data", unreduced={"model"}).unreduced
    frozenset({'model'})
    """

    __slots__ = ()
    UNCONSTRAINED: ClassVar[_Unconstrained] = _UNCONSTRAINED
    unreduced: frozenset[str] = _NO_AXES  # type: ignore[misc]
    reduced: frozenset[str] = _NO_AXES  # type: ignore[misc]

    def __new__(
        cls,
        *entries: str | Sequence[str] | _Unconstrained | None,
        unreduced: Set[str] = _NO_AXES,
        reduced: Set[str] = _NO_AXES,
    ) -> PartitionSpec:
        parsed = map(_entry, entries)
        if unreduced is _NO_AXES is reduced:
            return super().__new__(cls, parsed)
        sums = _axes("unreduced", unreduced), _axes("reduced", reduced)
        return _with_sums(tuple(parsed), *sums)

    def __add__(self, other: object) -> PartitionSpec:  # type: ignore[override]
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*self, *cast("tuple[Entry, ...]", other))

    def __radd__(self, other: tuple[Entry, ...]) -> PartitionSpec:
        return PartitionSpec(*other, *self)

    def __repr__(self) -> str:
        if spoken_text := dialect.spoken.spec_text:
            return spoken_text(self)
        return spec_text(map(repr, self), self.unreduced, self.reduced)

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_sums, (tuple(self), self.unreduced, self.reduced)

    @property
    def partitions(self) -> tuple[Entry, ...]:
        """The entries alone."""
        return tuple(self)

    @property
    def has_sums(self) -> bool:
        """Whether a sum is still to be taken: its own, or that of its cotangent."""
        return bool(self.unreduced or self.reduced)

    def update(
        self,
        partitions: Iterable[Any] | None = None,
        unreduced: Set[str] | None = None,
        reduced: Set[str] | None = None,
    ) -> PartitionSpec:
        """The same with other entries, or other axes over which sums are to be taken.

        Args:
            partitions: the entries; None for the same.
            unreduced: the axes over which the sum is still to be taken; None for the same.
            reduced: those over which that of the cotangent is; None for the same.

        >>> P("x", unreduced={"y"}).update(unreduced=set())
        P('x')
        """
        return PartitionSpec(
            *(self if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    @property
    def open_layout(self) -> OpenLayout:
        """Per dimension the tuple of axis names; None where that is left open."""
        return tuple(map(_names, self))

    @property
    def layout(self) -> Layout:
        """Per dimension the tuple of axis names.

        Raises:
            ValueError: a dimension is left open.
        """
        _refuse_open(self)
        return cast("Layout", self.open_layout)

    def with_layout(self, layout: Sequence[tuple[str, ...] | None]) -> PartitionSpec:
        """The spec of a layout, with the sums of this one.

        Args:
            layout: per dimension the axes that cut it; None where that is left open.
        """
        spec = PartitionSpec.of(tuple(layout))
        if not self.has_sums:
            return spec
        return spec.update(unreduced=self.unreduced, reduced=self.reduced)

    @classmethod
    def of(cls, layout: OpenLayout) -> PartitionSpec:
        """The spec of a layout, without entries for what is whole at the end.

        Args:
            layout: per dimension the names of the axes that cut it; None where that is left open.

        >>> PartitionSpec.of(((), ("x",), ()))
        P(None, 'x')
        """
        entries = [_UNCONSTRAINED if names is None else names or None for names in layout]
        return cls(*trimmed(tuple(entries), whole=None))


class _WithSums(PartitionSpec):
    """A spec that also says over which axes sums are still to be taken."""

    unreduced: frozenset[str]
    reduced: frozenset[str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WithSums) and self._key == other._key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return tuple(self), self.unreduced, self.reduced


P = PartitionSpec


def _with_sums(
    entries: tuple[Entry, ...], unreduced: frozenset[str], reduced: frozenset[str]
) -> PartitionSpec:
    if not (unreduced or reduced):
        return P(*entries)
    spec = super(PartitionSpec, _WithSums).__new__(_WithSums, entries)
    spec.unreduced, spec.reduced = unreduced, reduced
    sharded = {name for names in spec.open_layout for name in names or ()}
    twice = sorted((unreduced & reduced) | (unreduced & sharded) | (reduced & sharded))
    if twice:
        raise ValueError(
            f"PartitionSpec: {spec} names the axis {twice[0]!r} twice; an axis cuts a dimension, "
            "or a sum over it is still to be taken, or that of the cotangent"
        )
    return spec


def _axes(name: str, axes: object) -> frozenset[str]:
    listed: list[Any] = [*cast("Set[Any]", axes)] if isinstance(axes, (set, frozenset)) else [None]
    if not all([isinstance(name, str) for name in listed]):
        raise TypeError(
            f"PartitionSpec: {name} must be a set of names of axes, such as {name}={{'x'}}, got "
            f"{axes!r}"
        )
    return frozenset(listed)


def _refuse_open(spec: PartitionSpec) -> None:
    if _UNCONSTRAINED in spec:
        raise ValueError(
            f"{spec} leaves a dimension to the compiler, so it does not say how an array lies; "
            "it can only constrain values inside jit"
        )


def _names(entry: Entry) -> tuple[str, ...] | None:
    if entry is None or isinstance(entry, tuple):
        return entry or ()
    return (entry,) if isinstance(entry, str) else None


def _entry(entry: object) -> Entry:
    if entry is None or isinstance(entry, (str, _Unconstrained)):
        return entry
    listed = cast("Sequence[object]", entry) if isinstance(entry, (tuple, list)) else (entry,)
    names = tuple(e for e in listed if isinstance(e, str))
    if len(names) == len(listed):
        return names if len(names) > 1 else names[0] if names else None
    raise TypeError(
        "PartitionSpec: an entry must be None, the name of a mesh axis, a tuple of names or "
        f"P.UNCONSTRAINED, got {entry!r}"
    )


class NamedSharding(Sharding):
    """A sharding over a mesh: ``spec`` says which axes split which dimensions; others replicate.

    A dimension must be a multiple of the size of the axes that split it.

    Args:
        mesh: the devices, and the names of the axes of their grid. Over an ``AbstractMesh`` it
            can constrain values inside ``jit``, where a mesh with these axes is set. Over an empty
            mesh it says which dimensions there are, and no array lies so.
        spec: per dimension the axes that split it; what is left out at the end is not split.
        memory_kind: the kind of memory, such as "pinned_host"; if not given the devices' own.

    Raises:
        ValueError: the mesh lacks an axis of the spec, or the spec uses one twice; or the devices
            have no memory of that kind.

    >>> mesh = Mesh([[0, 1], [2, 3]], ("data", "model"))
    >>> NamedSharding(mesh, PartitionSpec("model")).assignment
    (0, 2, 1, 3)
    """

    __slots__ = ("mesh", "spec")
    _named: ClassVar[InternTable[NamedSharding]] = InternTable(1024)
    uneven: ClassVar[bool] = False  # whether the last blocks may be shorter

    mesh: Mesh
    spec: PartitionSpec

    def __new__(  # type: ignore[misc]
        cls, mesh: AnyMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ) -> Self:
        sharding = cls._asked(mesh, spec, cls.__name__)
        return sharding if memory_kind is None else sharding.with_memory_kind(memory_kind)

    @classmethod
    def _asked(cls, mesh: AnyMesh, spec: PartitionSpec, who: str) -> Self:
        """What ``spec`` says over ``mesh``; errors are in the name of ``who``, who was given it."""
        _check(mesh, spec, who)
        return cls._one(cast("Mesh", mesh), spec, True, who=who)

    @classmethod
    def _one(
        cls, mesh: Mesh, spec: PartitionSpec, committed: bool, memory: str | None = None,
        who: str = "NamedSharding",
    ) -> Self:  # fmt: skip
        """The one object that says so."""
        key = (cls, mesh, spec, committed, memory)
        cached = NamedSharding._named[key]
        if cached is None:
            cached = NamedSharding._named.add(key, cls._over(*key[1:], who))
        return cast("Self", cached)

    @classmethod
    def _over(
        cls, mesh: Mesh, spec: PartitionSpec, committed: bool, memory: str | None, who: str
    ) -> NamedSharding:
        layout = tuple(() if names is None else names for names in spec.open_layout)
        # without axes a grid has one place still, also where there is no device for it
        devices = mesh.flat if mesh.has_devices else range(math.prod(mesh.axis_sizes))
        plain = from_axes(devices, mesh.axes, layout, who).in_memory(memory)
        sharding = object.__new__(cls)
        for field in _FIELDS:
            setattr(sharding, field, getattr(plain, field))
        sharding._plain, sharding.mesh, sharding.spec = plain, mesh, spec
        sharding.committed = committed
        return sharding

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._one, (self.mesh, self.spec, self.committed, self.memory)

    def commit(self) -> Self:
        return self._one(self.mesh, self.spec, True, self.memory)

    def freed(self) -> Self:
        return self._one(self.mesh, self.spec, False, self.memory)

    def in_memory(self, memory: str | None) -> Self:
        return self._one(self.mesh, self.spec, self.committed, memory)

    @property
    def plain(self) -> Sharding:
        _refuse_open(self.spec)
        if not self.mesh.has_devices:
            raise ValueError(
                f"{self} has no devices, so no array lies by it; it can only constrain values "
                "inside jit, where a mesh with these axes is set"
            )
        return super().plain

    def _check_devices(self) -> None:
        _ = self.mesh.devices  # which a mesh of names and sizes alone refuses

    @property
    def is_fully_replicated(self) -> bool:
        return not self.tiles and not self.spec.unreduced

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        summed = self.spec.unreduced == unreduced_along(other)
        return summed and super().is_equivalent_to(other, ndim)

    def update(self, mesh: AnyMesh | None = None, spec: PartitionSpec | None = None) -> Self:
        """The same with another mesh or another spec.

        Args:
            mesh: another mesh; None for the same.
            spec: another spec; None for the same.

        >>> rows = NamedSharding(Mesh([0, 1], "x"), PartitionSpec("x"))
        >>> rows.update(spec=PartitionSpec(None, "x"))
        NamedSharding(mesh=Mesh('x': 2), spec=P(None, 'x'))
        """
        sharding = type(self)(mesh or self.mesh, self.spec if spec is None else spec)
        return sharding.in_memory(self.memory)

    def refusal(self, shape: tuple[int, ...]) -> str | None:
        """Why no array of ``shape`` may be asked to lie so; None if one may.

        Args:
            shape: the shape of the array.
        """
        return refusal_of_rank(self, shape) or _misfit(self, shape)

    def check_asked(self, shape: Sequence[int]) -> None:
        _raise_if(self.refusal(tuple(shape)))

    def blocks(self, shape: Sequence[int]) -> tuple[Blocks, ...]:
        _raise_if(_misfit(self, tuple(shape)))
        return blocks_of(tuple(shape), self.tiles)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mesh={self.mesh}, spec={self.spec}{self._memory_text})"


def unreduced_along(sharding: object) -> frozenset[str]:
    """The axes over which what lies so is a sum that is still to be taken."""
    return sharding.spec.unreduced if isinstance(sharding, NamedSharding) else _NO_AXES


_FIELDS = [name for name in Sharding.__slots__ if not name.startswith("__")]


class PmapSharding(NamedSharding):
    """How results of ``pmap`` lie: over the mesh of the call, whose axes have the names of its.

    Sizes need not be multiples: lanes are dealt out in equal blocks, the last of which may be
    shorter.

    Args:
        mesh: the devices, and the names of the axes of their grid.
        spec: per dimension the axes that split it.
        memory_kind: the kind of memory; None for the devices' own.

    >>> lanes = PmapSharding(Mesh([0, 1, 2], "i"), PartitionSpec("i"))
    >>> lanes.shard_shape((5, 4)), lanes.devices_indices_map((5,))[2]
    ((2, 4), (slice(4, 5, None),))
    """

    __slots__ = ()
    uneven = True

    @property
    def devices(self) -> np.ndarray[Any, np.dtype[np.object_]]:
        """The devices in a row, as an array; ``mesh.devices`` has them in the grid of the mesh."""
        return row(self.device_list)

    @property
    def sharding_spec(self) -> ShardingSpec:
        """What cuts the dimensions that ``spec`` tells, and what follows each axis of the mesh.

        >>> PmapSharding(Mesh([0, 1], "i"), PartitionSpec(None, "i")).sharding_spec.sharding
        (NoSharding(), Chunked(chunks=(2,)))
        """
        return sharding_spec_of(self.mesh.axes, self.spec.layout)


def _raise_if(refusal: str | None) -> None:
    if refusal is not None:
        raise ValueError(refusal)


@memoized(1024)
def _misfit(sharding: NamedSharding, shape: tuple[int, ...]) -> str | None:
    """Why no array of ``shape`` can be cut so; None if one can.

    Entries beyond its dimensions cut nothing where they are None, and libraries tell scalars so.
    Along Explicit axes they are refused: types have one entry for each dimension.
    """
    beyond = sharding.spec[len(shape) :]
    if any([entry is not None for entry in beyond]) or (beyond and sharding.mesh.explicit_axes):
        return refusal_of_rank(sharding, shape)
    _refuse_open(sharding.spec)
    blocks = enumerate(blocks_of(shape, sharding.tiles))
    uneven = next((dim for dim, block in blocks if block.padding), None)
    return None if uneven is None or sharding.uneven else _indivisible(sharding, shape, uneven)


def refusal_of_rank(sharding: object, shape: tuple[int, ...]) -> str | None:
    """Why no array with as many dimensions as ``shape`` may be asked to lie as ``sharding``."""
    if not isinstance(sharding, NamedSharding) or len(sharding.spec) <= len(shape):
        return None
    spec = sharding.spec
    entries = "1 entry" if len(spec) == 1 else f"{len(spec)} entries"
    return (
        f"{spec} has {entries}, but an array of shape {shape} has {len(shape)} "
        f"dimension{'' if len(shape) == 1 else 's'}; give at most one entry for each"
    )


def _indivisible(sharding: NamedSharding, shape: tuple[int, ...], dim: int) -> str:
    """What is wrong with dimension ``dim``, and what would not be."""
    sizes, layout, size = sharding.mesh.shape, sharding.spec.layout, shape[dim]
    names = layout[dim]
    parts = sharding.tiles[dim]
    cutting = " and ".join(f"{name!r} of size {sizes[name]}" for name in names)
    axes = f"axis {cutting}" if len(names) == 1 else f"axes {cutting}, {parts} parts,"
    multiples = [n for n in (size - size % parts, size + -size % parts) if n]
    used = {name for others in layout for name in others} - set(names)
    fitting = [repr(n) for n, k in sizes.items() if n not in used and k > 1 and size % k == 0]
    also = f", or split it over {' or '.join(fitting)}" if fitting else ""
    return (
        f"{sharding.spec} does not fit an array of shape {shape}: {axes} "
        f"{'does' if len(names) == 1 else 'do'} not divide dimension {dim}, whose size is {size}. "
        f"Make that size {' or '.join(map(str, multiples))}{also}, or leave the dimension whole"
    )


def _check(mesh: object, spec: object, who: str) -> None:
    if not isinstance(mesh, AnyMesh) or not isinstance(spec, PartitionSpec):
        error = TypeError(
            f"{who}: needs a Mesh and a PartitionSpec, "
            f"got {type(mesh).__name__} and {type(spec).__name__}"
        )
        raise coded(error, "no spec", spec=type(spec).__name__)
    for name in sorted(spec.unreduced | spec.reduced):
        if name not in mesh.axis_names:
            raise ValueError(
                f"{who}: {spec} is about sums over {name!r}, which is no axis of {mesh}, at "
                f"{user_location()}. {suggest_axis(name, mesh.axis_names)}"
            )
