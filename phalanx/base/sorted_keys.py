"""Structures of trees whose dicts come out with sorted keys, whatever order an example had."""

from __future__ import annotations

from typing import Any

from optree import PyTreeSpec

from phalanx.base.recent import Recent
from phalanx.base.registry import SPACE, optree


def with_sorted_keys(treedef: PyTreeSpec) -> PyTreeSpec:
    """``treedef``, which otherwise rebuilds dicts in the order of its example, sorting the keys.

    >>> treedef = optree.tree_structure({"b": 0, "a": 0}, namespace=SPACE)
    >>> treedef.unflatten([1, 2]), with_sorted_keys(treedef).unflatten([1, 2])
    ({'b': 2, 'a': 1}, {'a': 1, 'b': 2})
    """
    try:
        number = hash(treedef)
    except TypeError:  # what a class keeps beside the leaves is not hashable
        return optree.treespec_transform(treedef, _sorted)
    if _without_dicts[number]:
        return treedef
    known = _with_sorted_keys[treedef]  # structures are equal whatever the order of the keys
    if known is None:
        known = optree.treespec_transform(treedef, _sorted)
        if not _holds(_DICTS, treedef):
            _without_dicts[number] = True
        elif not _holds(_OF_USERS, treedef):
            _with_sorted_keys[treedef] = known
    return known


_with_sorted_keys: Recent[PyTreeSpec] = Recent(4096)
_without_dicts: Recent[bool] = Recent(4096)  # by their hashes: it keeps nothing alive
_DICTS = (optree.PyTreeKind.DICT, optree.PyTreeKind.DEFAULTDICT)
# of those that keep objects of users beside the leaves, perhaps large ones
_OF_USERS = (optree.PyTreeKind.CUSTOM, optree.PyTreeKind.DEFAULTDICT)


def _sorted(node: PyTreeSpec) -> PyTreeSpec:
    if node.kind not in _DICTS:
        return node
    leaf = optree.treespec_leaf()
    keys = dict.fromkeys(node.entries(), leaf)
    if node.type is dict:
        return optree.treespec_dict(keys, namespace=SPACE)
    example: Any = node.unflatten(node.entries())
    return optree.treespec_defaultdict(example.default_factory, keys, namespace=SPACE)


def _holds(kinds: tuple[Any, ...], treedef: PyTreeSpec) -> bool:
    """Whether a node of one of the kinds is in it."""
    return treedef.kind in kinds or any(_holds(kinds, child) for child in treedef.children())
