"""The structure of a tree as JSON: what an index says of it, and finds its leaves by.

A node is None, the number of a leaf, or an object with one entry, which says what holds the
children: ``{"list": [...]}``, ``{"tuple": [...]}``, ``{"dict": [[key, child], ...]}`` or
``{"object": [[name, child], ...]}``. Classes are not recorded, only what they call their children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from phalanx.base import tree
from phalanx.base.kinds import is_dict, is_list
from phalanx.base.source import user_location

Node = Any
Names = tuple[Any, ...]
_KEYS = (str, int, float, bool)


def outline(value: Any, who: str) -> tuple[Node, list[tuple[tree.Path, Any]]]:
    """The structure of a tree, and its leaves in the order of their numbers.

    Raises:
        TypeError: a key of a dict is neither text nor a number.

    >>> node, found = outline({"w": (1.0, None)}, "doctest")
    >>> node, [leaf for _, leaf in found]
    ({'dict': [['w', {'tuple': [0, None]}]]}, [1.0])
    """
    leaves: list[tuple[tree.Path, Any]] = []

    def walk(node: Any, path: tree.Path) -> Node:
        level = tree.one_level(node)
        if node is None or level is None:
            leaves.append((path, node))
            return None if node is None and leaves.pop() else len(leaves) - 1
        pairs = [
            [_name(key, path, who), walk(child, (*path, key))]
            for key, child in zip(level.keys, level.children, strict=True)
        ]
        kind = _kind(node, level)
        return {kind: pairs if kind in _NAMED else [child for _, child in pairs]}

    return walk(value, ()), leaves


_NAMED = ("dict", "object")


def _kind(node: Any, level: tree.Level) -> str:
    if isinstance(node, dict):
        return "dict"
    if any(isinstance(key, tree.GetAttrKey) for key in level.keys):
        return "object"
    return "tuple" if type(node) is tuple else "list"


def _name(key: Any, path: tree.Path, who: str) -> Any:
    name = tree.name_of(key)
    if not isinstance(name, _KEYS):
        raise TypeError(
            f"{who}: the keys of dicts must be text or numbers, which a file can hold, got {name!r}"
            f" at tree{tree.keystr(path)}, at {user_location()}"
        )
    return name


def check(node: Node) -> None:
    """Look at a node that a file tells of.

    Raises:
        ValueError: there is no such node.
    """
    if node is None or type(node) is int:
        return
    if not is_dict(node) or len(node) != 1:
        raise ValueError(f"{node!r:.80} is no node of a tree")
    ((kind, held),) = node.items()
    if kind not in (*_NAMED, "tuple", "list") or not is_list(held):
        raise ValueError(f"{node!r:.80} is no node of a tree")
    if kind in _NAMED:
        _check_names(held)
    for _, child in _children(node):
        check(child)


def _check_names(held: list[Any]) -> None:
    pairs = [one for one in held if is_list(one) and len(one) == 2 and isinstance(one[0], _KEYS)]
    if len(pairs) != len(held) or len({one[0] for one in pairs}) != len(held):
        raise ValueError(f"{held!r:.80} are not children, each with a name of its own")


def _children(node: Node) -> list[tuple[Any, Node]]:
    """The children of a node by name; a leaf and None have none."""
    if not is_dict(node):
        return []
    ((kind, held),) = node.items()
    if kind in _NAMED:
        return [(name, child) for name, child in held]
    children: list[Node] = held
    return list(enumerate(children))


def under(node: Node, names: Names) -> Node:
    """The node to which ``names`` lead.

    Raises:
        KeyError: there is none.

    >>> under({"dict": [["w", {"list": [0, 1]}]]}, ("w", 1))
    1
    """
    for name in names:
        node = dict(_children(node))[name]
    return node


def numbers(node: Node) -> Iterator[int]:
    """The numbers of the leaves of a node."""
    if isinstance(node, int):
        yield node
    for _, child in _children(node):
        yield from numbers(child)


def build(node: Node, leaf: Callable[[int], Any]) -> Any:
    """The tree of a node in dicts, lists and tuples; ``leaf`` gives the leaves by number.

    >>> build({"object": [["mean", 0], ["parts", {"tuple": []}]]}, float)
    {'mean': 0.0, 'parts': ()}
    """
    if not isinstance(node, dict):
        return None if node is None else leaf(node)
    children = {name: build(child, leaf) for name, child in _children(node)}
    if node.keys() & {*_NAMED}:
        return children
    return (tuple if "tuple" in node else list)(children.values())
