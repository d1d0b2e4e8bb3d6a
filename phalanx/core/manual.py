"""What types say of the axes of a mesh that ``shard_map`` takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct


class Typed(Struct, frozen=True):
    """The name of an axis for which types record whether a value varies along it.

    It stands for ``name`` wherever the axis is meant, so that every operation over the axis tells
    that it is of this kind. Users say ``name``.
    """

    name: Any

    def __repr__(self) -> str:
        return repr(self.name)

    def __str__(self) -> str:
        return str(self.name)


def typed(axes: Iterable[Any]) -> frozenset[Typed]:
    """Those of ``axes`` for which types record whether values vary along them."""
    return frozenset([a for a in axes if type(a) is Typed])


def user_axis_name(axis: Any) -> Any:
    """The name of ``axis`` as users say it."""
    return axis.name if type(axis) is Typed else axis


class ManualAxisType:
    """What a value is along the axes of a mesh that ``shard_map`` takes; of others it is the same.

    Args:
        varying: the names of the axes along which it varies, from position to position.
        unreduced: those along which each position has a part of a sum that is still to be taken.
        reduced: those along which it is the same, and its cotangent such a sum.

    Raises:
        ValueError: an axis is in two of them.

    >>> ManualAxisType(varying={"i"}, unreduced={"j"})
    ManualAxisType(varying={'i'}, unreduced={'j'})
    """

    __slots__ = ("reduced", "unreduced", "varying")

    varying: frozenset[Any]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __init__(
        self,
        *,
        varying: Iterable[Any] = (),
        unreduced: Iterable[Any] = (),
        reduced: Iterable[Any] = (),
    ) -> None:
        self.varying = frozenset(varying)
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)
        axes = [*self.varying, *self.unreduced, *self.reduced]
        twice = sorted([str(a) for a in {*axes} if axes.count(a) > 1])
        if twice:
            raise ValueError(
                f"ManualAxisType: {self} has the axis {twice[0]!r} twice; along an axis a value "
                "varies, or is unreduced, or reduced"
            )

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.varying, self.unreduced, self.reduced

    def invarying(self, mesh: Any) -> frozenset[Any]:
        """The axes that are taken of ``mesh`` along which it is the same, cotangents and all.

        Args:
            mesh: a mesh; the one inside ``shard_map`` is ``sharding.get_abstract_mesh()``.

        >>> import phalanx
        >>> from phalanx.sharding import AxisType
        >>> taken = (AxisType.Manual, AxisType.Manual)
        >>> mesh = phalanx.sharding.AbstractMesh((2, 2), ("i", "j"), taken)
        >>> ManualAxisType(varying={"i"}).invarying(mesh)
        frozenset({'j'})
        """
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ManualAxisType) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        kinds = [f"{name}={set(axes)}" for name in _KINDS if (axes := getattr(self, name))]
        return f"ManualAxisType({', '.join(kinds)})"


_KINDS = ("varying", "unreduced", "reduced")
