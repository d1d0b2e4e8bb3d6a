"""What is a leaf, and the leaves of a tree without its structure, which is less than flattening.

``optree`` asks of each leaf, under locks, whether it is a node of one kind or another. Here that is
asked once of each class. And two kinds of nodes of ``optree`` are leaves here, so that all that
flattens asks: deques, and results of the system with named fields, such as ``os.stat_result``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, cast

from phalanx.base.kinds import class_of
from phalanx.base.recent import Recent
from phalanx.base.registry import SPACE, optree

Way = Callable[[Any], Iterable[Any]]  # from a node to its children


def gather(tree: Any) -> list[Any]:
    """The leaves of ``tree``, left to right.

    >>> gather({"b": (2, None), "a": [1]})
    [1, 2]
    """
    found: list[Any] = []
    _gather((tree,), found)
    return found


def is_leaf(node: Any) -> bool:
    """Whether ``node`` is a leaf.

    >>> is_leaf(1), is_leaf(None), is_leaf(())
    (True, False, False)
    """
    return (_way(type(node)) or _found_way(node)) is _leaf


def is_node_class(kind: type) -> bool:
    """Whether instances of the class are nodes.

    >>> is_node_class(dict), is_node_class(int)
    (True, False)
    """
    return _way_of_class(kind) is not _leaf


def ends(is_leaf: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Whether a node is a leaf, or one by ``is_leaf``: ``optree`` looks longer for what is none.

    >>> says = ends(lambda x: x == ())
    >>> says(()), says(1), says([])
    (True, True, False)
    """
    way, found, leaf = _way, _found_way, _leaf

    def says(node: Any) -> bool:
        return is_leaf(node) or (way(type(node)) or found(node)) is leaf

    return says


def forget(kind: type) -> None:
    """Instances of the class are other nodes than before, or nodes now."""
    _ways.forget(kind)


def _gather(nodes: Iterable[Any], found: list[Any]) -> None:
    for node in nodes:
        way = _way(type(node)) or _found_way(node)
        if way is _leaf:
            found.append(node)
        else:
            _gather(way(node), found)


def _found_way(node: Any) -> Way:
    return _way_of_class(class_of(node))


def _way_of_class(kind: type) -> Way:
    way = _ways[kind]
    if way is None:
        way = _ways[kind] = _OF_BUILTINS.get(kind) or _way_of(kind)
    return way


def _way_of(kind: type) -> Way:
    registered: Any = optree.register_pytree_node.get(kind, namespace=SPACE)  # type: ignore[attr-defined]
    if registered is None or registered.type is not kind:  # without an entry of its own
        return elements if optree.is_namedtuple_class(kind) else _leaf
    flatten = registered.flatten_func

    def children(node: Any) -> Iterable[Any]:
        made = flatten(node)
        return made[0] if class_of(made) is tuple and len(made) == 2 else _below(node)

    return children


def _leaf(node: Any) -> Iterable[Any]:
    return (node,)


def keys_in_order(node: dict[Any, Any]) -> list[Any]:
    """The keys of a dict as its values follow each other; also those that Python does not compare.

    >>> keys_in_order({"b": 1, "a": 2})
    ['a', 'b']
    """
    try:
        return sorted(node)
    except TypeError:
        level: Any = optree.tree_flatten_one_level(cast(Any, node), namespace=SPACE)
        return level.metadata


def _values(node: dict[Any, Any]) -> Iterable[Any]:
    return [node[key] for key in keys_in_order(node)]


def _below(node: Any) -> Iterable[Any]:
    return optree.tree_flatten(node, lambda x: x is not node, namespace=SPACE)[0]


elements: Way = cast(Any, tuple).__iter__  # whatever a subclass makes of it
_OF_BUILTINS: dict[type, Way] = {
    tuple: elements,
    list: iter,
    dict: _values,
    NoneType: lambda _: (),
    deque: _leaf,
}
_ways: Recent[Way] = Recent(1024)
_way = _ways.young
