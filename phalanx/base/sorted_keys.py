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
    if _young(number) or _without_order[number]:
        return treedef
    known = _with_sorted_keys[treedef]  # structures are equal whatever the order of the keys
    if known is None:
        known = optree.treespec_transform(treedef, _sorted)
        if not _has_an_order(treedef):
            _without_order[number] = True
        elif not _holds_other_data(treedef):
            _with_sorted_keys[treedef] = known
    return known


_with_sorted_keys: Recent[PyTreeSpec] = Recent(4096)
_without_order: Recent[bool] = Recent(4096)  # by their hashes: it keeps nothing alive
_young = _without_order.young
_DICTS = (optree.PyTreeKind.DICT, optree.PyTreeKind.DEFAULTDICT)


def _sorted(node: PyTreeSpec) -> PyTreeSpec:
    if node.kind not in _DICTS:
        return node
    leaf = optree.treespec_leaf()
    keys = dict.fromkeys(node.entries(), leaf)
    if node.type is dict:
        return optree.treespec_dict(keys, namespace=SPACE)
    example: Any = node.unflatten(node.entries())
    return optree.treespec_defaultdict(example.default_factory, keys, namespace=SPACE)


def _has_an_order(treedef: PyTreeSpec) -> bool:
    """Whether a dict of several keys is in it: most keyword arguments are none or one."""
    own = treedef.kind in _DICTS and treedef.num_children > 1
    return own or any(map(_has_an_order, treedef.children()))


def _holds_other_data(treedef: PyTreeSpec) -> bool:
    """Whether it keeps objects of users beside the leaves, perhaps large ones."""
    kinds = (optree.PyTreeKind.CUSTOM, optree.PyTreeKind.DEFAULTDICT)
    return treedef.kind in kinds or any(map(_holds_other_data, treedef.children()))
