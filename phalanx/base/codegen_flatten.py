"""The leaves of many trees of one structure, at a quarter of the cost of flattening.

A function is written for each structure, as those of data classes are.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.base import tree as trees
from phalanx.base.kinds import class_of

_NOT_COMPARED = (OrderedDict, defaultdict)  # they have an order, or options, of their own


def flatten_function(example: Any) -> Callable[[Any], list[Any] | None] | None:
    """The function from trees like ``example`` to their leaves, and from all others to None.

    Where the example has a leaf, what a tree has there is not looked into. None if the example
    holds what cannot be compared, or is so deep that only jaxlib can walk it.

    >>> pairs = flatten_function({"a": (1, 2)})
    >>> pairs({"a": (3, 4)}), pairs({"a": [3, 4]}), pairs(OrderedDict(a=(3, 4)))
    ([3, 4], None, None)
    """
    text = _Text()
    try:
        if not text.take(example, "tree"):
            return None
    except RecursionError:
        return None
    lines = [
        "def leaves(tree):",
        "    try:",
        *[f"        {line}" for line in text.lines],
        f"        return [{', '.join(text.leaves)}]",
        "    except (KeyError, ValueError):",
        "        return None",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), text.values, namespace)  # all words in them are those of this file
    return namespace["leaves"]


class _Text:
    """The statements that take a tree apart.

    Attributes:
        lines: they compare nodes, and name children that are nodes.
        leaves: the expressions of the leaves, in order; ``*node`` where all children are such.
        values: the objects that the statements name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.values: dict[str, Any] = {}
        self._numbers = itertools.count()

    def take(self, example: Any, node: str) -> bool:
        """Take apart what ``node`` names; False if ``example`` cannot be compared."""
        kind = class_of(example)
        if kind in _NOT_COMPARED:
            return False
        if example is None:
            self._demand(f"{node} is None")
            return True
        if trees.is_leaf(example):
            self.leaves.append(node)
            return True
        if kind is dict:
            return self._take_dict(example, node)
        if kind in (tuple, list):
            self._demand(f"type({node}) is {kind.__name__} and len({node}) == {len(example)}")
            return self._take_children(example, node)
        children, level = trees.flatten_call(example, lambda inner: inner is not example)
        self._demand(f"type({node}) is {self._value(kind)}")
        return self._take_children(children, f"{self._value(level.flatten_up_to)}({node})")

    def _take_dict(self, example: dict[Any, Any], node: str) -> bool:
        self._demand(f"type({node}) is dict and len({node}) == {len(example)}")
        level = trees.one_level(example)
        keys = [step.key for step in level.keys] if level else []
        return all([self._take_child(example[k], f"{node}[{self._value(k)}]") for k in keys])

    def _take_children(self, examples: Sequence[Any], nodes: str) -> bool:
        if all(map(trees.is_leaf, examples)):
            self.leaves.append(f"*{nodes}")
            return True
        names = [self._name() for _ in examples]
        self.lines.append(f"{', '.join(names)}, = {nodes}")
        return all(map(self.take, examples, names))

    def _take_child(self, example: Any, expression: str) -> bool:
        if trees.is_leaf(example):
            self.leaves.append(expression)
            return True
        name = self._name()
        self.lines.append(f"{name} = {expression}")
        return self.take(example, name)

    def _demand(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def _value(self, value: Any) -> str:
        name = self._name()
        self.values[name] = value
        return name

    def _name(self) -> str:
        return f"x{next(self._numbers)}"
