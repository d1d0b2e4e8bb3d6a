"""Nodes of trees one level at a time, what structures are made of, and reductions in pairs."""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from phalanx.base.errors import TreeError
from phalanx.base.registry import NODES
from phalanx.base.tree import (
    IsLeaf,
    Tree,
    flatten,
    is_leaf,
    leaves,
    one_level,
    structure,
)
from phalanx.xla import pytrees
from phalanx.xla.pytrees import PyTreeDef

KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath = tuple[KeyEntry, ...]

# ---- structures -----------------------------------------------------------------------------


def outline(treedef: PyTreeDef) -> Tree:
    """A tree of structure ``treedef`` where nothing is known of the leaves: they are ``object()``.

    Classes may keep arrays as leaves and numbers as settings, and tell by looking at them; a plain
    object they take for an array.

    >>> leaves(outline(structure([1, 2])))[0].__class__
    <class 'object'>
    """
    return treedef.unflatten([object()] * treedef.num_leaves)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether ``treedef`` is the structure of a leaf, or of a node without children.

    Args:
        treedef: the structure of a tree.

    >>> from phalanx.tree import structure
    >>> treedef_is_leaf(structure(1)), treedef_is_leaf(structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children.

    Args:
        treedef: the structure of a tree.

    Returns:
        A list of structures.

    >>> from phalanx.tree import structure
    >>> treedef_children(structure([1, (2,)]))
    [PyTreeDef(*), PyTreeDef((*,))]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose elements have the structures ``treedefs``.

    Args:
        treedefs: structures of trees.

    Returns:
        A structure.

    Raises:
        TypeError: something else is among them.

    >>> from phalanx.tree import structure
    >>> treedef_tuple([structure(1), structure([2])])
    PyTreeDef((*, [*]))
    """
    structures: list[Any] = [*treedefs]
    for i, one in enumerate(structures):
        if not isinstance(one, PyTreeDef):  # jaxlib would read it as one
            raise TypeError(
                f"treedef_tuple: treedefs are structures, got {one!r} at position {i}; "
                "tree.structure gives that of a tree"
            )
    return pytrees.treedef_tuple(NODES, structures)


# ---- nodes ----------------------------------------------------------------------------------


def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Tree
) -> Tree:
    """A tree ``outer`` of trees ``inner`` as a tree ``inner`` of trees ``outer``.

    Args:
        outer_treedef: structure of the outer part of the tree.
        inner_treedef: structure of the subtrees; None: that of the first subtree.
        pytree_to_transpose: the tree to turn over.

    Returns:
        A tree.

    Raises:
        TreeError: the tree is not ``outer`` of ``inner``.

    >>> transpose(structure([0, 0]), structure({"x": 0}), [{"x": 1}, {"x": 2}])
    {'x': [1, 2]}
    """
    for name, treedef in (("outer_treedef", outer_treedef), ("inner_treedef", inner_treedef)):
        if not isinstance(treedef, PyTreeDef) and (treedef is not None or name == "outer_treedef"):
            raise TreeError(
                f"tree.transpose: {name} must be a structure, got {treedef!r}; "
                "tree.structure gives that of a tree"
            )
    if inner_treedef is None and not outer_treedef.num_leaves:
        raise TreeError(
            f"tree.transpose: {outer_treedef} has no subtrees to take the inner structure from; "
            "give inner_treedef"
        )
    try:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        part = structure(subtrees[0]) if inner_treedef is None else inner_treedef
        rows = [part.flatten_up_to(subtree) for subtree in subtrees]
    except ValueError as error:
        part = inner_treedef
        rows = None if part is None else _rows_below(outer_treedef, part, pytree_to_transpose)
        if part is None or rows is None:
            raise TreeError(
                f"tree.transpose: the tree is not {outer_treedef} of {part or 'subtrees'}: {error}"
            ) from None
    columns = ([row[i] for row in rows] for i in range(part.num_leaves))
    return part.unflatten([outer_treedef.unflatten(column) for column in columns])


def _rows_below(outer: PyTreeDef, inner: PyTreeDef, tree: Tree) -> list[list[Any]] | None:
    """The leaves of each ``inner``, if ``tree`` is what the two make; else None.

    A node may tell all that is below it: then ``outer`` alone is not the upper part of ``tree``.
    """
    leaves, treedef = flatten(tree)
    size = inner.num_leaves
    rows = [leaves[i * size : (i + 1) * size] for i in range(outer.num_leaves)]
    try:
        joined = outer.unflatten([inner.unflatten(row) for row in rows])
    except ValueError:
        return None
    return rows if structure(joined) == treedef else None


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf, or one by ``is_leaf``; None is no leaf.

    Args:
        iterable: anything, one by one.
        is_leaf: a function of a node; where it gives True the node counts as a leaf.

    Returns:
        A Python bool.

    >>> all_leaves([1, "a"]), all_leaves([1, (2,)]), all_leaves([None])
    (True, False, False)
    """
    return builtins.all(_is_leaf(x, is_leaf) for x in iterable)


def _is_leaf(x: Any, says: IsLeaf) -> bool:
    return (says is not None and says(x)) or is_leaf(x)


def is_tree_node(typ: type) -> bool:
    """Whether instances of the class are nodes: of tuples and the like, and registered ones.

    Args:
        typ: a class, not an instance.

    Returns:
        A Python bool.

    >>> is_tree_node(dict), is_tree_node(int)
    (True, False)
    """
    return NODES.is_node(typ)


def flatten_one_level(tree: Tree) -> tuple[tuple[Any, ...], Any]:
    """The children of a node, and what its structure keeps besides them.

    Args:
        tree: a node that is no leaf.

    Returns:
        A pair: a tuple of children, and the metadata.

    Raises:
        ValueError: ``tree`` is a leaf.

    >>> flatten_one_level({"a": 1, "b": [2]})
    ((1, [2]), ['a', 'b'])
    """
    level = _level(tree)
    return tuple(level.children), level.metadata


def flatten_one_level_with_keys(tree: Tree) -> tuple[tuple[tuple[Any, Any], ...], Any]:
    """The children of a node, each with the step to it, and what its structure keeps besides.

    Args:
        tree: a node that is no leaf.

    Returns:
        A pair: a tuple of pairs (step, child), and the metadata.

    Raises:
        ValueError: ``tree`` is a leaf.

    >>> flatten_one_level_with_keys([5])
    (((SequenceKey(idx=0), 5),), None)
    """
    level = _level(tree)
    return tuple(zip(level.keys, level.children, strict=True)), level.metadata


def _level(tree: Tree) -> Any:
    level = one_level(tree)
    if level is None:
        raise TreeError(f"flatten_one_level: a node is needed, got a leaf of {type(tree)}")
    return level


# ---- reductions in pairs, and fields --------------------------------------------------------

_NOTHING: Any = object()


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Tree,
    *,
    identity: Any = _NOTHING,
    is_leaf: IsLeaf = None,
) -> Any:
    """The leaves combined in pairs, the results in pairs again, and so on: few steps in a row.

    Args:
        operation: of two leaves; it must be associative.
        tree: any tree.
        identity: the result for a tree without leaves.
        is_leaf: called on every node; True makes the node a leaf.

    Returns:
        What the operation returns last; ``identity`` of no leaves.

    Raises:
        TypeError: there is neither a leaf nor an identity.

    >>> reduce_associative(lambda x, y: x + y, ["a", "b", "c"])
    'abc'
    """
    row = leaves(tree, is_leaf)
    if not row and identity is _NOTHING:
        raise TypeError("reduce_associative: a tree without leaves needs an identity")
    while len(row) > 1:
        pairs = [operation(x, y) for x, y in zip(row[::2], row[1::2], strict=False)]
        row = [*pairs, row[-1]] if len(row) % 2 else pairs
    return row[0] if row else identity


def static(**kwargs: Any) -> Any:
    """``dataclasses.field`` for what is part of the structure, with ``register_dataclass``.

    Args:
        kwargs: what ``dataclasses.field`` takes.

    Returns:
        What ``dataclasses.field`` returns.

    >>> import dataclasses, phalanx
    >>> @phalanx.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = static(default="dense")
    >>> phalanx.tree.leaves(Layer(1.0))
    [1.0]
    """
    metadata: dict[Any, Any] = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)
