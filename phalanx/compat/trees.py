"""What others take of trees from private modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import optree

from phalanx.tree_util import is_tree_node


class _Registry(Mapping):
    """The classes that are registered as nodes, as far as one asks."""

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and is_tree_node(kind)

    def __getitem__(self, kind: type) -> Any:
        if kind not in self:
            raise KeyError(kind)
        return optree.register_pytree_node.get(kind)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[type]:
        return iter(())

    def __len__(self) -> int:
        return 0


_registry = _Registry()
