"""The sharding that is a part of a type: which mesh axes of type Explicit cut which dimension.

The type ``f32[8@x,4]`` has the spec ``P('x', None)``. A type without a spec says nothing: the value
is whole on every device, or the compiler decides. Inside ``shard_map`` a spec also says over which
Manual axes sums are still to be taken; their names are ``Typed``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Protocol

from phalanx.base.recent import InternTable
from phalanx.core.layouts import Layout, MeshAxes
from phalanx.core.manual import typed

_NONE: Final = frozenset[Any]()


class Grid(Protocol):
    """A grid whose axes have names: a mesh.

    Types need no devices of it. Where one that the user gave has none, they are those over which a
    program turns out to run.
    """

    @property
    def axes(self) -> MeshAxes: ...

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis, by name."""
        ...

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The axes along which types say how values lie."""
        ...

    @property
    def abstract_mesh(self) -> Grid:
        """The grid without devices."""
        ...

    def __hash__(self) -> int: ...


class MeshSpec:
    """A layout over ``mesh``; equal ones are one object.

    A value that is *unreduced* along axes is a sum over their positions that is still to be taken:
    each has a part of it, of the shape of the whole. One that is *reduced* along axes is the same
    at all their positions, and its cotangent unreduced.

    Args:
        mesh: the grid, without devices; None where it says something of Manual axes alone.
        layout: for every dimension, the axes that cut it.
        unreduced: the axes over which a sum is still to be taken.
        reduced: the axes over which that of the cotangent is.
    """

    __slots__ = ("__weakref__", "has_sums", "layout", "mesh", "of_manual", "reduced", "unreduced")
    _one: ClassVar[InternTable[MeshSpec]] = InternTable(1024)

    mesh: Grid | None
    layout: Layout
    unreduced: frozenset[Any]
    reduced: frozenset[Any]
    has_sums: bool  # whether a sum is still to be taken: its own, or that of its cotangent
    of_manual: bool  # whether one of these is over Manual axes

    @classmethod
    def of(
        cls,
        mesh: Grid | None,
        layout: Iterable[Iterable[str]],
        unreduced: frozenset[Any] = _NONE,
        reduced: frozenset[Any] = _NONE,
    ) -> MeshSpec | None:
        """The spec of these; None if it would say nothing."""
        dims = tuple(map(tuple, layout))
        sums = unreduced | reduced
        if not (any(dims) or sums):
            return None
        manual = typed(sums)
        if not any(dims) and manual == sums:
            mesh = None
        key = (mesh, dims, unreduced, reduced)
        interned = cls._one[key]
        if interned is None:
            interned = object.__new__(cls)
            interned.mesh, interned.layout, interned.unreduced, interned.reduced = key
            interned.has_sums = bool(sums)
            interned.of_manual = bool(manual)
            interned = cls._one.add(key, interned)
        return interned

    def with_layout(self, layout: Iterable[Iterable[str]]) -> MeshSpec | None:
        """The same with another layout."""
        return MeshSpec.of(self.mesh, layout, self.unreduced, self.reduced)

    def without_dims(self, dims: Iterable[int]) -> MeshSpec | None:
        """The spec after the dimensions ``dims`` are removed."""
        gone = set(dims)
        return self.with_layout([a for d, a in enumerate(self.layout) if d not in gone])

    def with_dim(self, dim: int, axes: Iterable[str] = ()) -> MeshSpec | None:
        """The spec after a dimension is inserted at ``dim``, which ``axes`` cut."""
        return self.with_layout([*self.layout[:dim], tuple(axes), *self.layout[dim:]])

    def without_axes(self, axes: Iterable[Any]) -> MeshSpec | None:
        """The spec without ``axes``: that of a block, which they have cut out already."""
        taken = frozenset(axes)
        left = [[a for a in names if a not in taken] for names in self.layout]
        return MeshSpec.of(self.mesh, left, self.unreduced - taken, self.reduced - taken)

    @property
    def explicit(self) -> MeshSpec | None:
        """What it says along axes of type Explicit."""
        if not self.of_manual:
            return self
        unreduced, reduced = typed(self.unreduced), typed(self.reduced)
        return MeshSpec.of(
            self.mesh, self.layout, self.unreduced - unreduced, self.reduced - reduced
        )

    @property
    def manual(self) -> MeshSpec | None:
        """What it says along Manual axes."""
        if not self.of_manual:
            return None
        whole = [()] * len(self.layout)
        return MeshSpec.of(None, whole, typed(self.unreduced), typed(self.reduced))

    @property
    def cotangent(self) -> MeshSpec | None:
        """The spec of the cotangent: unreduced along the axes that were reduced, and vice versa."""
        return MeshSpec.of(self.mesh, self.layout, self.reduced, self.unreduced)

    def __reduce__(self) -> tuple[Any, ...]:
        return MeshSpec.of, (self.mesh, self.layout, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        return spec_text(map(_entry, self.layout), self.unreduced, self.reduced)


def both(explicit: MeshSpec | None, manual: MeshSpec | None) -> MeshSpec | None:
    """The spec of ``explicit`` along axes of type Explicit, and of ``manual`` along Manual ones."""
    cuts = explicit and explicit.explicit
    sums = manual and manual.manual
    if cuts is None or sums is None:
        return cuts or sums
    unreduced, reduced = cuts.unreduced | sums.unreduced, cuts.reduced | sums.reduced
    return MeshSpec.of(cuts.mesh, cuts.layout, unreduced, reduced)


def spec_text(entries: Iterable[str], unreduced: frozenset[Any], reduced: frozenset[Any]) -> str:
    """What a user writes for it.

    >>> spec_text(["'x'", "None"], frozenset({"z", "y"}), frozenset())
    "P('x', None, unreduced={'y', 'z'})"
    """
    sums = {"unreduced": unreduced, "reduced": reduced}
    sets = [f"{name}={{{_listed(axes)}}}" for name, axes in sums.items() if axes]
    return f"P({', '.join([*entries, *sets])})"


def _listed(names: frozenset[Any]) -> str:
    return ", ".join(map(repr, sorted(names, key=str)))


def _entry(names: tuple[str, ...]) -> str:
    return repr(names[0] if len(names) == 1 else names or None)
