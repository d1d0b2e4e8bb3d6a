"""What others take of trees from private modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from phalanx.base import tree
from phalanx.base.errors import TreeError
from phalanx.base.registry import optree
from phalanx.tree_util import is_tree_node


class _Registry(Mapping[type, Any]):
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


def prefix_errors(
    prefix: Any, full: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], TreeError]]:
    """Where ``prefix`` is none of ``full``: of what a message calls it to the error, or nothing.

    Only the first place is told.
    """
    try:
        tree.broadcast_prefix(prefix, full, "{name}", is_leaf)
    except TreeError as e:
        message = str(e)
        return [lambda name: TreeError(message.replace("{name}", name))]
    return []
