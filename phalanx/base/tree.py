"""Trees: nested tuples, lists, dicts and registered classes, with arrays and numbers as leaves.

``None`` is a node without children. The keys of a dict are sorted. Everything that must be
fast is done by jaxlib; where two trees differ is found in Python, when a message needs it.
"""

from __future__ import annotations

import builtins
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, overload

from phalanx.base.errors import TreeError
from phalanx.base.kinds import class_of, is_sequence
from phalanx.base.registry import CALLS, NODES, keys_do_not_sort
from phalanx.base.source import user_location
from phalanx.xla.pytrees import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
)

Tree = Any
IsLeaf = Callable[[Any], bool] | None

# ---- flattening and rebuilding --------------------------------------------------------------

_flatten, _flatten_call, _is_node = NODES.flatten, CALLS.flatten, NODES.is_node


def flatten(tree: Tree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of ``tree``, left to right, and its structure.

    Args:
        tree: any tree.
        is_leaf: called on every node; True makes the node a leaf.

    Returns:
        A list, and a structure.

    Raises:
        TreeError: the keys of a dict cannot be sorted, or a class or ``is_leaf`` does not return
            what it should.
        RecursionError: a node lies below itself, or the tree is too deep.

    >>> flatten({"b": (2, None), "a": 1})
    ([1, 2], PyTreeDef({'a': *, 'b': (*, None)}))
    """
    try:
        return _flatten(tree, is_leaf)
    except (ValueError, SystemError) as error:
        _raise_in_words(error)


def flatten_call(arguments: Tree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of ``arguments``, and their structure as part of the key of a call.

    In such a structure, what nodes keep beside their children is told apart as ``key_of`` does it:
    a function may do one thing for a node that keeps 1, and another for one that keeps True.

    >>> from phalanx.tree_util import register_static
    >>> @register_static
    ... class Scale(float): ...
    >>> structure(Scale(0.0)) == structure(Scale(-0.0))
    True
    >>> flatten_call(Scale(0.0))[1] == flatten_call(Scale(-0.0))[1]
    False
    """
    try:
        return _flatten_call(arguments, is_leaf)
    except (ValueError, SystemError) as error:
        _raise_in_words(error)


def _raise_in_words(error: ValueError | SystemError) -> NoReturn:
    """Raise what jaxlib could not do with a tree; what a class of the user raised stays."""
    place, cause = error.__traceback__, error.__cause__
    if place is not None and place.tb_next is not None:
        raise error
    if isinstance(cause, RecursionError):
        raise RecursionError(
            f"a tree is too deep, or a node of it lies below itself, at {user_location()}"
        ) from None
    if isinstance(cause, TypeError):
        raise keys_do_not_sort(cause) from None
    raise TreeError(f"{error}, at {user_location()}") from None


def leaves(tree: Tree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of ``tree``, left to right.

    Args:
        tree: a tree: nested tuples, lists, dicts and registered classes, with leaves in them.
        is_leaf: a function of a node; where it gives True the node counts as a leaf.

    Returns:
        A list.

    >>> leaves([1, {"y": 2, "x": 3}])
    [1, 3, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Tree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """What is left of ``tree`` without its leaves; structures compare and hash.

    Args:
        tree: a tree: nested tuples, lists, dicts and registered classes, with leaves in them.
        is_leaf: a function of a node; where it gives True the node counts as a leaf.

    Returns:
        A structure.

    >>> structure((1, [2])) == structure((3, [4]))
    True
    """
    return flatten(tree, is_leaf)[1]


def shown(structure: PyTreeDef) -> str:
    """A structure as messages show it: ``*`` for every leaf.

    >>> print(shown(structure({"a": 1, "b": (2, 3)})))
    {'a': *, 'b': (*, *)}
    """
    return str(structure).removeprefix("PyTreeDef(").removesuffix(")")


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Tree:
    """The tree of structure ``treedef`` with these leaves.

    Args:
        treedef: the structure, as ``structure`` gives it.
        leaves: the leaves, in order.

    Returns:
        A tree.

    Raises:
        TreeError: there are more or fewer leaves than the structure has.

    >>> unflatten(structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    values = leaves if is_sequence(leaves) else [*leaves]
    try:
        return treedef.unflatten(values)
    except ValueError:
        if len(values) == treedef.num_leaves:
            raise
        raise TreeError(
            f"unflatten: {treedef.num_leaves} leaves are needed for {treedef}, got {len(values)}"
        ) from None


def builder(treedef: PyTreeDef) -> Callable[[Iterable[Any]], Tree]:
    """What makes a tree of structure ``treedef`` of exactly as many leaves as that has.

    >>> builder(structure((0, 0)))([1, 2]), builder(structure({"a": 0}))([1])
    ((1, 2), {'a': 1})
    """
    node = treedef.node_data() if treedef.num_nodes == treedef.num_leaves + 1 else None
    return node[0] if node is not None and node[0] in (tuple, list) else treedef.unflatten


def is_leaf(x: Any) -> bool:
    """Whether ``x`` is a leaf and not a node; None is a node."""
    return not _is_node(class_of(x))


# ---- paths ----------------------------------------------------------------------------------


Path = tuple[Any, ...]


class Level(NamedTuple):
    """A node by itself: the steps to its children, these, and what it keeps besides."""

    keys: Sequence[Any]
    children: Sequence[Any]
    metadata: Any


def one_level(node: Any) -> Level | None:
    """The children of ``node`` and the steps to them; None where ``node`` is a leaf."""
    pairs, treedef = flatten_with_path(node, _is_below, True)
    node_data = treedef.node_data()
    if node_data is None:
        return None
    return Level([path[0] for path, _ in pairs], [child for _, child in pairs], node_data[1])


def _is_below(path: Path, _: Any) -> bool:
    return len(path) == 1


def flatten_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Path, Any]], PyTreeDef]:
    """The leaves of ``tree``, each with the path to it, and its structure.

    Args:
        tree: any tree.
        is_leaf: called on every node; True makes the node a leaf.
        is_leaf_takes_path: whether it is called as ``is_leaf(path, node)``.

    Returns:
        A list of pairs (path, leaf), and a structure.

    >>> paths, _ = flatten_with_path({"w": [1, 2]})
    >>> [(keystr(path), leaf) for path, leaf in paths]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    >>> paths, _ = flatten_with_path({"w": [1, 2]}, lambda path, _: len(path) == 1, True)
    >>> [(keystr(path), leaf) for path, leaf in paths]
    [("['w']", [1, 2])]
    """
    ends = is_leaf if is_leaf is None or is_leaf_takes_path else _without_path(is_leaf)
    try:
        return NODES.flatten_with_path(tree, ends)
    except (ValueError, SystemError) as error:
        _raise_in_words(error)


def _without_path(is_leaf: Callable[[Any], bool]) -> Callable[[Path, Any], bool]:
    return lambda path, node: is_leaf(node)


def leaves_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[Path, Any]]:
    """The leaves of ``tree``, each with the path to it, as ``flatten_with_path``.

    Args:
        tree: any tree.
        is_leaf: called on every node; True makes the node a leaf.
        is_leaf_takes_path: whether it is called as ``is_leaf(path, node)``.

    Returns:
        A list of pairs (path, leaf).

    >>> leaves_with_path({"a": [1.0, 2.0]})[1]
    ((DictKey(key='a'), SequenceKey(idx=1)), 2.0)
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def keystr(keys: Path, *, simple: bool = False, separator: str = "") -> str:
    """A path as one would write it in Python after the name of the tree.

    Args:
        keys: steps, as ``flatten_with_path`` gives them.
        simple: write only the key, index or name of each step.
        separator: what stands between two steps.

    Returns:
        A string; "" of the root of a tree.

    >>> keystr((DictKey("w"), SequenceKey(0))), keystr((DictKey("w"), SequenceKey(0)),
    ...     simple=True, separator="/")
    ("['w'][0]", 'w/0')
    """
    return separator.join(str(name_of(key)) if simple else str(key) for key in keys)


def name_of(key: Any) -> Any:
    """What a step of a path says: a key, the name of an attribute, or a position.

    >>> name_of(DictKey("w")), name_of(SequenceKey(0))
    ('w', 0)
    """
    return getattr(key, key.__match_args__[0]) if isinstance(key, _STEPS) else str(key)


_STEPS = (DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey)


# ---- mapping and reducing -------------------------------------------------------------------


@overload
def map(f: Callable[[Any], Any], tree: Tree, *, is_leaf: IsLeaf = None) -> Tree: ...
@overload
def map(
    f: Callable[[Any, Any], Any], tree: Tree, other: Tree, /, *, is_leaf: IsLeaf = None
) -> Tree: ...
@overload
def map(
    f: Callable[..., Any], tree: Tree, _2: Tree, _3: Tree, /, *rest: Tree, is_leaf: IsLeaf = None
) -> Tree: ...
def map(f: Callable[..., Any], tree: Tree, *rest: Tree, is_leaf: IsLeaf = None) -> Tree:
    """The tree of ``f(leaf, ...)`` over the leaves of ``tree`` and what lies there in ``rest``.

    Args:
        f: called with one leaf of ``tree`` and the subtree at the same place in each of
            ``rest``.
        tree: decides the structure of the result.
        rest: trees with the structure of ``tree``, or deeper.
        is_leaf: called on every node of ``tree``; True makes the node a leaf.

    Returns:
        A tree like ``tree``.

    Raises:
        TreeError: a tree in ``rest`` does not have the structure; the message names the path.

    >>> map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    columns = [_flatten_like(tree, treedef, other, i, is_leaf) for i, other in enumerate(rest, 1)]
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns, strict=True)])


def _flatten_like(
    tree: Tree, treedef: PyTreeDef, other: Tree, position: int, is_leaf: IsLeaf
) -> list[Any]:
    try:
        return treedef.flatten_up_to(other)
    except ValueError as error:
        mismatch = _mismatch(tree, other, (), is_leaf)
        if mismatch is None:
            raise TreeError(f"tree.map: {error}") from None
        path, what, first, second = mismatch
        raise TreeError(  # "pytree structure error ... key path" is the field's, for matching
            f"tree.map: pytree structure error: {what} at key path tree{keystr(path)}: the first "
            f"tree has {first} there, tree number {position + 1} has {second}"
        ) from None


def map_with_path(
    f: Callable[..., Any],
    tree: Tree,
    *rest: Tree,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Tree:
    """The tree of ``f(path, leaf, ...)``, otherwise as ``map`` and ``flatten_with_path``.

    Args:
        f: called with one leaf of ``tree`` and the subtree at the same place in each of ``rest``.
        tree: decides the structure of the result.
        *rest: trees with the structure of ``tree``, or deeper.
        is_leaf: called on every node of ``tree``; True makes the node a leaf.
        is_leaf_takes_path: whether it is called as ``is_leaf(path, node)``.

    Returns:
        A tree like ``tree``.

    >>> map_with_path(lambda path, x: keystr(path), {"a": [1, 2]})
    {'a': ["['a'][0]", "['a'][1]"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    is_leaf_of_rest = None if is_leaf_takes_path else is_leaf
    columns = [
        _flatten_like(tree, treedef, other, i, is_leaf_of_rest) for i, other in enumerate(rest, 1)
    ]
    rows = zip(pairs, *columns, strict=True)
    return treedef.unflatten([f(path, leaf, *others) for (path, leaf), *others in rows])


_NOTHING = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Tree,
    initializer: Any = _NOTHING,
    is_leaf: IsLeaf = None,
) -> Any:
    """``f(... f(f(initializer, leaf0), leaf1) ..., leafN)``, with f the ``function``.

    Args:
        function: a function of what there is so far, and a leaf.
        tree: a tree: nested tuples, lists, dicts and registered classes, with leaves in them.
        initializer: what to begin with; without it the first leaf.
        is_leaf: a function of a node; where it gives True the node counts as a leaf.

    Returns:
        What the function returns last; ``initializer`` of no leaves.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    start = () if initializer is _NOTHING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def all(tree: Tree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true.

    Args:
        tree: a tree: nested tuples, lists, dicts and registered classes, with leaves in them.
        is_leaf: a function of a node; where it gives True the node counts as a leaf.

    Returns:
        A Python bool. Leaves are tested by ``bool``, so arrays have one element, and are not
        traced.

    >>> all({"a": True, "b": [1, 0]})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def broadcast(prefix_tree: Tree, full_tree: Tree, is_leaf: IsLeaf = None) -> Tree:
    """``full_tree`` with every leaf replaced by the leaf of ``prefix_tree`` above it.

    Args:
        prefix_tree: a tree whose leaves stand for whole subtrees.
        full_tree: the tree whose structure the result has.
        is_leaf: a function of a node; where it gives True the node counts as a leaf.

    Returns:
        A tree like ``full_tree``.

    >>> broadcast((1, 2), ([0, 0], {"a": 0}))
    ([1, 1], {'a': 2})
    """
    treedef = structure(full_tree, is_leaf)
    return treedef.unflatten(broadcast_prefix(prefix_tree, full_tree, "prefix", is_leaf))


# ---- prefixes -------------------------------------------------------------------------------


def broadcast_prefix(
    prefix: Tree, tree: Tree, name: str = "prefix", is_leaf: IsLeaf = None
) -> list[Any]:
    """For every leaf of ``tree`` the leaf of ``prefix`` that lies above it.

    Args:
        prefix: a tree that ends where, or above where, ``tree`` ends. None is a leaf of it.
        tree: the full tree. None is a node without leaves in it.
        name: what the message calls the prefix, such as ``pmap in_axes``.
        is_leaf: called on every node of ``prefix``; True makes the node a leaf.

    Raises:
        TreeError: ``prefix`` is no prefix of ``tree``; the message names the path.

    >>> broadcast_prefix((0, None), ({"a": 1, "b": 2}, [3, 4]))
    [0, 0, None, None]
    """
    above, treedef = flatten(prefix, _or_none(is_leaf))
    try:
        below = treedef.flatten_up_to(tree)
    except ValueError as error:
        mismatch = _mismatch(prefix, tree, (), _or_none(is_leaf))
        if mismatch is None:
            raise TreeError(f"{name}: {error}") from None
        path, what, first, second = mismatch
        of_leaf = second.removeprefix("a leaf ")
        raise TreeError(  # as above
            f"pytree structure error: {what} at key path {name}{keystr(path)}: it has {first} "
            f"there, the value that it applies to is "
            f"{second if of_leaf == second else f'one leaf {of_leaf}'}, at {user_location()}; give "
            f"{'an entry for each part of that, or ' if of_leaf == second else ''}one for all of it"
        ) from None
    return [x for x, part in zip(above, below, strict=True) for _ in leaves(part)]


def _or_none(is_leaf: IsLeaf) -> Callable[[Any], bool]:
    if is_leaf is None:
        return lambda x: x is None
    return lambda x: x is None or is_leaf(x)


_DICTS = (dict, OrderedDict, defaultdict)


def _disagreement(a: Any, above: Level, b: Any, below: Level | None) -> str | None:
    """How two nodes differ that should be alike, in words; None where they are."""
    kind = class_of(a)
    if below is None or kind is not class_of(b):
        return "different types"
    if kind in _DICTS and above.keys != below.keys:
        return f"different keys of {kind.__name__}"
    if len(above.children) != len(below.children):
        return f"different lengths of {kind.__name__}"
    return None if above.metadata == below.metadata else f"different metadata of {kind.__name__}"


def _mismatch(a: Tree, b: Tree, path: Path, is_leaf: IsLeaf) -> tuple[Path, str, str, str] | None:
    """The first place where ``a`` is not a prefix of ``b``: path, how, and both descriptions."""
    above = None if is_leaf is not None and is_leaf(a) else one_level(a)
    if above is None:
        return None
    below = one_level(b)
    what = _disagreement(a, above, b, below)
    if what is not None or below is None:
        return path, what or "different types", _describe(a, above), _describe(b, below)
    for key, x, y in zip(above.keys, above.children, below.children, strict=True):
        mismatch = _mismatch(x, y, (*path, key), is_leaf)
        if mismatch is not None:
            return mismatch
    return None


def _describe(node: Any, level: Level | None) -> str:
    kind = type(node).__name__
    if node is None:
        return "None"
    if level is None:
        return f"a leaf of type {kind}"
    if class_of(node) in _DICTS:
        return f"a {kind} with keys {[key.key for key in level.keys]}"
    return f"a {kind} of {len(level.children)}"
