"""Values in groups, by which parameters of loops tell what each operand is: consts, carry, rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct


class FlatTree(Struct, frozen=True):
    """A value, or a tuple of such trees.

    >>> tree = pack((nones(1), nones(2)))
    >>> [group.vals for group in tree.update("abc").unpack()]
    [['a'], ['b', 'c']]
    """

    parts: tuple[FlatTree, ...] | None = None
    value: Any = None

    @property
    def vals(self) -> list[Any]:
        """All values, in order."""
        if self.parts is None:
            return [self.value]
        return [value for part in self.parts for value in part.vals]

    def __len__(self) -> int:
        return len(self.vals)

    def unpack(self) -> tuple[FlatTree, ...]:
        """The trees of a tuple.

        Raises:
            ValueError: this is one value.
        """
        if self.parts is None:
            raise ValueError("unpack: a tuple of trees is needed, and this is one value")
        return self.parts

    def map(self, f: Callable[[Any], Any]) -> FlatTree:
        """The tree of ``f(value)``."""
        if self.parts is None:
            return FlatTree(value=f(self.value))
        return FlatTree(tuple([part.map(f) for part in self.parts]))

    def update(self, vals: Iterable[Any]) -> FlatTree:
        """The same tree of as many other values.

        Raises:
            ValueError: there are more or fewer.
        """
        values = list(vals)
        if len(values) != len(self):
            raise ValueError(f"update: a tree of {len(self)} values, and {len(values)} are given")
        rest = iter(values)
        return self.map(lambda _: next(rest))


def nones(count: int) -> FlatTree:
    """A tuple of ``count`` values that say nothing."""
    return FlatTree((FlatTree(),) * count)


def pack(trees: Iterable[FlatTree]) -> FlatTree:
    """The tuple of ``trees``."""
    return FlatTree(tuple(trees))
