"""The leaves of many trees of one and the same structure, at a tenth of the cost of flattening."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from itertools import compress
from typing import Any

from phalanx.base import tree as trees

_TOLERATED = (OrderedDict, defaultdict, deque)  # in the place of another that differs in options
_ONLY_DICTS = {dict}


class Exact:
    """Takes the leaves out of trees that have the structure of an example, and of no others.

    ``PyTreeSpec.flatten_up_to`` is fast, but where the example has a dict it lets any kind of
    dict pass. So the dicts are taken out as well and their types compared: at once all those
    that lie inside equally many others.

    >>> pairs = Exact.of({"a": (1, 2)})
    >>> pairs.leaves({"a": (3, 4)}), pairs.leaves({"a": [3, 4]})
    ([3, 4], None)
    >>> pairs.leaves(OrderedDict(a=(3, 4))) is None
    True
    """

    __slots__ = ("_flatten_up_to", "_levels")

    def __init__(self, example: Any, levels: list[set[int]]) -> None:
        self._flatten_up_to: Callable[[Any], list] = trees.flatten_call(example)[1].flatten_up_to
        # per level what finds the dicts there, and which ones are they of what it finds
        self._levels = [_finding(example, ids) for ids in levels]

    @classmethod
    def of(cls, example: Any, sure: Any = None) -> Exact | None:
        """What knows the structure of ``example``; None if a container there cannot be compared.

        ``sure`` is a dict in the example in whose place there will always be a dict.
        """
        levels = []
        nodes = [example]
        while nodes:
            containers = [n for n in trees.leaves(nodes, _is_container) if _is_container(n)]
            if any(type(n) in _TOLERATED for n in containers):
                return None
            levels.append({id(n) for n in containers if n is not sure})
            nodes = [value for n in containers for value in n.values()]
        return cls(example, [ids for ids in levels if ids])

    def leaves(self, tree: Any) -> list[Any] | None:
        """The leaves of ``tree``, or None where its structure is another one.

        Where the example has a leaf, what ``tree`` has there is not looked into.
        """
        try:
            for flatten_up_to, dicts in self._levels:
                if {*map(type, compress(flatten_up_to(tree), dicts))} != _ONLY_DICTS:
                    return None
            return self._flatten_up_to(tree)
        except ValueError:
            return None


def _is_container(node: Any) -> bool:
    return type(node) is dict or type(node) in _TOLERATED


def _finding(example: Any, ids: set[int]) -> tuple[Callable[[Any], list], list[bool]]:
    # A dict may lie at several depths of the example, hence on several levels. It is found in all
    # its places on the deepest of them, where nothing around it is taken for a leaf.
    nodes, structure = trees.flatten(example, lambda node: id(node) in ids)
    return structure.flatten_up_to, [id(node) in ids for node in nodes]
