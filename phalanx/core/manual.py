"""What types say of the axes of a mesh that ``shard_map`` takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phalanx.base.source import user_location


class ManualAxisType:
    """The axes of a mesh along which a value varies, from position to position.

    Args:
        varying: the names of these axes.
        unreduced: must be empty: inside ``shard_map`` no value is a sum that is still to be made.
        reduced: must be empty.

    Raises:
        NotImplementedError: ``unreduced`` or ``reduced`` names axes.

    >>> ManualAxisType(varying={"i"})
    ManualAxisType(varying={'i'})
    """

    __slots__ = ("varying",)

    varying: frozenset[Any]

    def __init__(
        self,
        *,
        varying: Iterable[Any] = (),
        unreduced: Iterable[Any] = (),
        reduced: Iterable[Any] = (),
    ) -> None:
        refuse_sums("ManualAxisType", unreduced=unreduced, reduced=reduced)
        self.varying = frozenset(varying)

    @property
    def unreduced(self) -> frozenset[Any]:
        """No axes."""
        return frozenset()

    reduced = unreduced

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ManualAxisType) and other.varying == self.varying

    def __hash__(self) -> int:
        return hash(self.varying)

    def __repr__(self) -> str:
        along = f"varying={set(self.varying)}" if self.varying else ""
        return f"ManualAxisType({along})"


def refuse_sums(who: str, **axes: Iterable[Any]) -> None:
    """Raise an error for axes over which an array would hold sums that are still to be made."""
    for name, given in axes.items():
        if frozenset(given):
            raise NotImplementedError(
                f"{who}: {name}={given!r} is not supported, at {user_location()}: inside shard_map "
                "no value is a sum that is still to be made; lax.psum makes it"
            )
