"""How values lie over a mesh, as types say it: along the axes of type Explicit.

A type without it says nothing: the value is whole on every device, or the compiler decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

from phalanx.base.recent import Unique
from phalanx.core.layouts import Layout


class Axed(Protocol):
    """A grid whose axes have names: a mesh, of which types need no devices."""

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis, by name."""
        ...

    def __hash__(self) -> int: ...


class OverMesh:
    """A layout over ``mesh``; equal ones are one object.

    Args:
        mesh: the grid, without devices.
        layout: for every dimension, the axes that cut it.
    """

    __slots__ = ("__weakref__", "layout", "mesh")
    _one: ClassVar[Unique[OverMesh]] = Unique(1024)

    mesh: Axed
    layout: Layout

    @classmethod
    def of(cls, mesh: Axed, layout: Iterable[Iterable[str]]) -> OverMesh | None:
        """What lies so; None where that says nothing."""
        dims = tuple(map(tuple, layout))
        if not any(dims):
            return None
        key = (mesh, dims)
        made = cls._one[key]
        if made is None:
            made = object.__new__(cls)
            made.mesh, made.layout = key
            made = cls._one.add(key, made)
        return made

    def with_layout(self, layout: Iterable[Iterable[str]]) -> OverMesh | None:
        """The same with another layout."""
        return OverMesh.of(self.mesh, layout)

    def without_dims(self, dims: Iterable[int]) -> OverMesh | None:
        """How it lies without the dimensions ``dims``, which are gone."""
        gone = set(dims)
        return self.with_layout([a for d, a in enumerate(self.layout) if d not in gone])

    def with_dim(self, dim: int, axes: Iterable[str] = ()) -> OverMesh | None:
        """How it lies with a further dimension at ``dim``, which ``axes`` cut."""
        return self.with_layout([*self.layout[:dim], tuple(axes), *self.layout[dim:]])

    def without_axes(self, axes: Iterable[Any]) -> OverMesh | None:
        """How a block lies that ``axes`` have cut out already, along the others."""
        taken = frozenset(axes)
        return self.with_layout([[a for a in names if a not in taken] for names in self.layout])

    def __reduce__(self) -> tuple[Any, ...]:
        return OverMesh.of, (self.mesh, self.layout)

    def __repr__(self) -> str:
        return f"P({', '.join(map(_entry, self.layout))})"


def _entry(names: tuple[str, ...]) -> str:
    return repr(names[0] if len(names) == 1 else names or None)
