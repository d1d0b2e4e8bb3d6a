"""Trees: nested tuples, lists, dicts and registered classes, with arrays and numbers as leaves.

``None`` is a node without children. The keys of a dict are sorted. Everything that must be
fast is done by ``optree``; paths are found in Python, when a message or a caller needs them.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import re
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, overload

from msgspec import Struct
from msgspec.structs import astuple
from optree import PyTreeSpec

from phalanx.base import gathering
from phalanx.base.config import settings
from phalanx.base.errors import TreeError
from phalanx.base.keys import key_of
from phalanx.base.kinds import class_of
from phalanx.base.registry import SPACE, optree
from phalanx.base.sorted_keys import with_sorted_keys
from phalanx.base.source import user_location

_partly_typed: Any = optree  # where its types are not whole

Tree = Any
IsLeaf = Callable[[Any], bool] | None
Class = TypeVar("Class", bound=type)
PyTreeDef = PyTreeSpec

_CALLS = "phalanx calls"  # where structures are parts of the keys of calls

# ---- flattening and rebuilding --------------------------------------------------------------


def flatten(tree: Tree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeSpec]:
    """The leaves of ``tree``, left to right, and its structure.

    Args:
        tree: any tree.
        is_leaf: called on every node; True makes the node a leaf.

    Returns:
        A list, and a structure.

    >>> flatten({"b": (2, None), "a": 1})
    ([1, 2], PyTreeSpec({'a': *, 'b': (*, None)}))
    """
    ends = gathering.is_leaf if is_leaf is None else gathering.ends(is_leaf)
    found, treedef = optree.tree_flatten(tree, ends, namespace=SPACE)
    return found, with_sorted_keys(treedef) if settings().sort_dict_keys else treedef


def flatten_call(arguments: Tree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeSpec]:
    """The leaves of ``arguments``, and their structure as part of the key of a call.

    In such a structure, what nodes keep beside their children is told apart as ``key_of`` does it:
    a function may do one thing for a node that keeps 1, and another for one that keeps True.

    >>> @register_static
    ... class Scale(float): ...
    >>> structure(Scale(0.0)) == structure(Scale(-0.0))
    True
    >>> flatten_call(Scale(0.0))[1] == flatten_call(Scale(-0.0))[1]
    False
    """
    ends = gathering.is_leaf if is_leaf is None else gathering.ends(is_leaf)
    return optree.tree_flatten(arguments, ends, namespace=_CALLS)


class _Metadata:
    """What a node keeps beside its children, told apart by its ``key`` from what equals it."""

    __slots__ = ("data", "key")

    def __init__(self, data: Any, key: Hashable) -> None:
        self.data = data
        self.key = key

    def __eq__(self, other: object) -> bool:
        return type(other) is _Metadata and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.data)


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
    return gathering.gather(tree) if is_leaf is None else flatten(tree, is_leaf)[0]


def structure(tree: Tree, is_leaf: IsLeaf = None) -> PyTreeSpec:
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


def shown(structure: PyTreeSpec) -> str:
    """A structure as messages show it: ``*`` for every leaf.

    >>> print(shown(structure({"a": 1, "b": (2, 3)})))
    {'a': *, 'b': (*, *)}
    """
    text = str(structure).removeprefix("PyTreeSpec(").removesuffix(")")
    return _NAMESPACE.sub("", text)


_NAMESPACE = re.compile(r", namespace='[^']*'$")


def unflatten(treedef: PyTreeSpec, leaves: Iterable[Any]) -> Tree:
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
    try:
        return treedef.unflatten(leaves)
    except ValueError:
        given = list(leaves)
        if len(given) == treedef.num_leaves:
            raise
        raise TreeError(
            f"unflatten: {treedef.num_leaves} leaves are needed for {treedef}, got {len(given)}"
        ) from None


def builder(treedef: PyTreeSpec) -> Callable[[Iterable[Any]], Tree]:
    """What makes a tree of structure ``treedef`` of exactly as many leaves as that has.

    >>> builder(structure((0, 0)))([1, 2]), builder(structure({"a": 0}))([1])
    ((1, 2), {'a': 1})
    """
    flat = treedef.num_nodes == treedef.num_leaves + 1
    return treedef.type if flat and treedef.type in (tuple, list) else treedef.unflatten


def is_leaf(x: Any) -> bool:
    """Whether ``x`` is a leaf and not a node; None is a node."""
    return gathering.is_leaf(x)


# ---- paths ----------------------------------------------------------------------------------


class DictKey(Struct, frozen=True):
    """The step from a dict to the value under ``key``.

    Args:
        key: the key in the dict.

    >>> paths, _ = flatten_with_path({"a": 1.0})
    >>> paths[0][0]
    (DictKey(key='a'),)
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(Struct, frozen=True):
    """The step from a tuple or list to element ``idx``.

    Args:
        idx: the position in a list or tuple.

    >>> paths, _ = flatten_with_path([1.0])
    >>> paths[0][0]
    (SequenceKey(idx=0),)
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class GetAttrKey(Struct, frozen=True):
    """The step from an object to its attribute ``name``.

    Args:
        name: the name of the attribute.

    >>> keystr((GetAttrKey("weights"),))
    '.weights'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(Struct, frozen=True):
    """The step from an object that does not name its children to child number ``key``.

    Args:
        key: the number of the child.

    >>> FlattenedIndexKey(2).key
    2
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


Path = tuple[Any, ...]


class Level(NamedTuple):
    keys: Sequence[Any]
    children: Sequence[Any]
    metadata: Any


_with_keys: dict[type, Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]] = {}


def one_level(node: Any) -> Level | None:
    """The children of ``node`` and the steps to them; None where ``node`` is a leaf."""
    if gathering.is_leaf(node):
        return None  # asked first: flattening a leaf writes its elements into an error
    kind = class_of(node)
    if kind in _with_keys:
        pairs, metadata = _with_keys[kind](node)
        pairs = list(pairs)
        return Level([key for key, _ in pairs], [child for _, child in pairs], metadata)
    if node is None:
        return Level((), (), None)
    if kind is list or kind is tuple:
        return Level([SequenceKey(i) for i in range(len(node))], node, None)
    if kind is dict:
        names = gathering.keys_in_order(node)
        return Level([DictKey(k) for k in names], [node[k] for k in names], names)
    level = optree.tree_flatten_one_level(node, namespace=SPACE)
    if level.kind == optree.PyTreeKind.NAMEDTUPLE:
        names = [GetAttrKey(name) for name in node._fields]
        return Level(names, [*gathering.elements(node)], level.metadata)
    if level.kind == optree.PyTreeKind.CUSTOM:
        keys: list[Any] = [FlattenedIndexKey(i) for i in range(len(level.entries))]
    else:  # an OrderedDict or a defaultdict
        keys = [DictKey(entry) for entry in level.entries]
    return Level(keys, level.children, level.metadata)


def flatten_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Path, Any]], PyTreeSpec]:
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
    if is_leaf is None:
        return _paths(tree, None), structure(tree)
    answers: list[bool] = []

    def asked(path: Path, node: Any) -> bool:
        answers.append(is_leaf(path, node) if is_leaf_takes_path else is_leaf(node))
        return answers[-1]

    pairs = _paths(tree, asked)
    again = iter(answers)  # of the same nodes, in the same order
    return pairs, structure(tree, lambda _: next(again))


AtPath = Callable[[Path, Any], bool]  # whether a node is a leaf, by the path to it, and itself


def _paths(tree: Tree, is_leaf: AtPath | None) -> list[tuple[Path, Any]]:
    found: list[tuple[Path, Any]] = []
    _visit(tree, (), is_leaf, found)
    return found


def _visit(node: Tree, path: Path, is_leaf: AtPath | None, found: list[tuple[Path, Any]]) -> None:
    if (is_leaf is not None and is_leaf(path, node)) or (level := one_level(node)) is None:
        found.append((path, node))
        return
    for key, child in zip(level.keys, level.children, strict=True):
        _visit(child, (*path, key), is_leaf, found)


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
    return astuple(key)[0] if isinstance(key, _STEPS) else str(key)


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
    tree: Tree, treedef: PyTreeSpec, other: Tree, position: int, is_leaf: IsLeaf
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
    known = None if is_leaf_takes_path else is_leaf
    columns = [_flatten_like(tree, treedef, other, i, known) for i, other in enumerate(rest, 1)]
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
    return list(_leaves_above(prefix, tree, (), name, is_leaf))


def _leaves_above(
    prefix: Tree, node: Tree, path: Path, name: str, is_leaf: IsLeaf
) -> Iterator[Any]:
    above = None if prefix is None or (is_leaf and is_leaf(prefix)) else one_level(prefix)
    if above is None:
        yield from [prefix] * len(leaves(node))
        return
    below = one_level(node)
    what = _disagreement(prefix, above, node, below)
    if what is not None or below is None:
        raise TreeError(  # as above
            f"pytree structure error: {what} at key path {name}{keystr(path)}: it has "
            f"{_describe(prefix, above)} there, the value that it applies to is "
            f"{'one leaf' if below is None else _describe(node, below)}, at {user_location()}"
        )
    for key, over, under in _side_by_side(above, below):
        yield from _leaves_above(over, under, (*path, key), name, is_leaf)


_DICTS = (dict, OrderedDict, defaultdict)  # any of which may stand for another


def _disagreement(a: Any, above: Level, b: Any, below: Level | None) -> str | None:
    """How two nodes differ that should be alike, in words; None where they are."""
    kind = class_of(a)
    both_dicts = kind in _DICTS and class_of(b) in _DICTS
    if below is None or (kind is not class_of(b) and not both_dicts):
        return "different types"
    if both_dicts:
        return None if set(above.keys) == set(below.keys) else "different keys of dict"
    if len(above.children) != len(below.children):
        return f"different lengths of {kind.__name__}"
    return None if above.metadata == below.metadata else f"different metadata of {kind.__name__}"


def _side_by_side(above: Level, below: Level) -> Iterable[tuple[Any, Any, Any]]:
    """Steps and children of two nodes that agree, in the order of the second.

    Two dicts may have their keys in different orders, when one is an ``OrderedDict``.
    """
    children = above.children
    if above.keys != below.keys and builtins.all(type(key) is DictKey for key in below.keys):
        by_key = dict(zip(above.keys, children, strict=True))
        children = [by_key[key] for key in below.keys]
    return zip(below.keys, children, below.children, strict=True)


def _mismatch(a: Tree, b: Tree, path: Path, is_leaf: IsLeaf) -> tuple[Path, str, str, str] | None:
    """The first place where ``a`` is not a prefix of ``b``: path, how, and both descriptions."""
    above = None if is_leaf is not None and is_leaf(a) else one_level(a)
    if above is None:
        return None
    below = one_level(b)
    what = _disagreement(a, above, b, below)
    if what is not None or below is None:
        return path, what or "different types", _describe(a, above), _describe(b, below)
    for key, x, y in _side_by_side(above, below):
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


# ---- registering classes --------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make instances of the class ``nodetype`` nodes of trees.

    Args:
        nodetype: the class.
        flatten_func: from an instance to ``(children, metadata)``; the metadata is part of the
            structure, hence must be hashable and comparable.
        unflatten_func: from ``(metadata, children)`` to an instance. The children may be any
            objects, so it should not look into them.
        flatten_with_keys_func: as ``flatten_func``, with pairs ``(key, child)``; the keys appear
            in paths.

    Raises:
        ValueError: the class is registered already.

    >>> from phalanx import tree_util
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> tree_util.register_pytree_node(
    ...     Interval, lambda x: ((x.low, x.high), None), lambda _, ends: Interval(*ends)
    ... )
    >>> tree_util.tree_leaves(Interval(1, 2))
    [1, 2]
    """

    def flatten(node: Any) -> tuple[Iterable[Any], Any]:
        children, metadata = flatten_func(node)
        key = key_of(metadata)
        return children, metadata if key is metadata else _Metadata(metadata, key)

    def unflatten(metadata: Any, children: Any) -> Any:
        kept = metadata.data if type(metadata) is _Metadata else metadata
        return unflatten_func(kept, children)

    with warnings.catch_warnings():  # of a namedtuple: that it is one already, which is overridden
        warnings.simplefilter("ignore", UserWarning)
        _partly_typed.register_pytree_node(nodetype, flatten_func, unflatten_func, namespace=SPACE)
        _partly_typed.register_pytree_node(nodetype, flatten, unflatten, namespace=_CALLS)
    gathering.forget(nodetype)
    if flatten_with_keys_func is not None:
        _with_keys[nodetype] = flatten_with_keys_func


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """``register_pytree_node`` for a class that names its children.

    Args:
        nodetype: the class.
        flatten_with_keys: from an instance to ``(pairs of key and child, metadata)``.
        unflatten_func: from ``(metadata, children)`` to an instance. The children may be any
            objects, so it should not look into them.
        flatten_func: from an instance to ``(children, metadata)``; the metadata is part of the
            structure, hence must be hashable and comparable.

    >>> from phalanx import tree_util
    >>> class Span:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> def children(span):
    ...     names = tree_util.GetAttrKey("low"), tree_util.GetAttrKey("high")
    ...     return list(zip(names, (span.low, span.high))), None
    >>> tree_util.register_pytree_with_keys(Span, children, lambda _, ends: Span(*ends))
    >>> [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(Span(1, 2))]
    ['.low', '.high']
    """

    def without_keys(node: Any) -> tuple[list[Any], Any]:
        pairs, metadata = flatten_with_keys(node)
        return [child for _, child in pairs], metadata

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Class) -> Class:
    """Decorator: make ``cls`` a node by its ``tree_flatten`` and ``tree_unflatten`` methods.

    Args:
        cls: the class; it is returned, so this is a decorator.

    Returns:
        The class.

    >>> @register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, x, y): self.x, self.y = x, y
    ...     def tree_flatten(self): return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children): return cls(*children)
    >>> leaves(Pair(1, (2, 3)))
    [1, 2, 3]
    """
    register_pytree_node(
        cls,
        lambda node: node.tree_flatten(),
        lambda metadata, children: cls.tree_unflatten(metadata, children),  # type: ignore[attr-defined]
    )
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Decorator as ``register_pytree_node_class``, by ``tree_flatten_with_keys``.

    Args:
        cls: the class; it is returned, so this is a decorator.

    Returns:
        The class.

    >>> from phalanx import tree_util
    >>> @tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, inside):
    ...         self.inside = inside
    ...     def tree_flatten_with_keys(self):
    ...         return [(tree_util.GetAttrKey("inside"), self.inside)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> tree_util.tree_leaves_with_path(Box(3))[0][1]
    3
    """
    register_pytree_with_keys(
        cls,
        lambda node: node.tree_flatten_with_keys(),
        lambda metadata, children: cls.tree_unflatten(metadata, children),  # type: ignore[attr-defined]
        (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a dataclass a node: data fields are children, meta fields are part of the structure.

    Args:
        nodetype: the class. It is built anew by calling it with all fields by keyword.
        data_fields: names of the children. By default all fields of a dataclass that are not
            declared with ``field(metadata={"static": True})``.
        meta_fields: names of the fields that must be hashable and comparable.
        drop_fields: names of the fields that are left out and get their defaults again.

    Returns:
        ``nodetype``, so that it can be a decorator.

    Raises:
        ValueError: the names do not cover the fields, or the class is registered already.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     label: str = dataclasses.field(default="", metadata={"static": True})
    >>> map(lambda v: v + 1, Point(1.0, "a"))
    Point(x=2.0, label='a')
    """
    data, meta = _fields(nodetype, data_fields, meta_fields, drop_fields)
    keys = tuple(GetAttrKey(name) for name in data)

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children = tuple([getattr(node, name) for name in data])
        return children, tuple([getattr(node, name) for name in meta])

    def flatten_with_keys(node: Any) -> tuple[Iterable[tuple[Any, Any]], tuple[Any, ...]]:
        children, metadata = flatten(node)
        return zip(keys, children, strict=True), metadata

    def unflatten(metadata: tuple[Any, ...], children: Iterable[Any]) -> Any:
        return nodetype(
            **dict(zip(data, children, strict=True)), **dict(zip(meta, metadata, strict=True))
        )

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _fields(
    cls: type,
    data: Sequence[str] | None,
    meta: Sequence[str] | None,
    drop: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    who = f"register_dataclass: {cls.__name__}"
    if not dataclasses.is_dataclass(cls):
        if data is None or meta is None:
            raise ValueError(f"{who} is not a dataclass; give data_fields and meta_fields")
        return tuple(data), tuple(meta)
    init = [f for f in dataclasses.fields(cls) if f.init and f.name not in drop]
    if data is None and meta is None:
        meta = [f.name for f in init if f.metadata.get("static")]
    names = [f.name for f in init]
    meta = [n for n in names if n not in (data or ())] if meta is None else meta
    data = [n for n in names if n not in meta] if data is None else data
    if sorted((*data, *meta)) != sorted(names):
        raise ValueError(
            f"{who} has the fields {names}, but data_fields={list(data)} and "
            f"meta_fields={list(meta)}; each field must be in one of them, or in drop_fields"
        )
    return tuple(data), tuple(meta)


def register_static(cls: Class) -> Class:
    """Make instances of ``cls`` nodes without leaves, compared as part of the structure.

    Args:
        cls: the class; it is returned, so this is a decorator.

    Returns:
        The class.

    >>> @register_static
    ... class Mode(str): ...
    >>> leaves((1, Mode("train")))
    [1]
    """
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node)
    return cls


class Partial(functools.partial[Any]):
    """A ``functools.partial`` that is a tree: its arguments are children.

    Args:
        func: the function, which is part of the structure.
        args: its first arguments: trees of arrays.
        keywords: arguments by keyword: trees of arrays.

    >>> add = Partial(lambda x, y: x + y, 1)
    >>> leaves(add), map(lambda x: 10 * x, add)(2)
    ([1], 12)
    """


register_pytree_with_keys(
    Partial,
    lambda node: (
        ((GetAttrKey("args"), node.args), (GetAttrKey("keywords"), node.keywords)),
        node.func,
    ),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda node: ((node.args, node.keywords), node.func),
)
