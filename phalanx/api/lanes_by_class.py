"""Classes of trees that say themselves which of their leaves have lanes, under vmap and pmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from phalanx.base import tree

__all__ = ["CLASSES", "LanesOfClass", "axes_by_class"]


class LanesOfClass(NamedTuple):
    """What a class says of an instance, given the axis that a user says of it.

    ``of_lane`` calls what it is given with a part and its axis, for each part that has lanes, and
    puts what comes back in its place; ``of_all`` does the same, with the size first.
    """

    of_lane: Callable[[Callable[[Any, Any], Any], Any, Any, Any], Any]
    of_all: Callable[[Callable[[Any, Any, Any], Any], Any, Any, Any], Any]


CLASSES: dict[type, LanesOfClass] = {}


class _Axis(NamedTuple):
    """A leaf whose lanes are along ``dim``, as an instance of its class says."""

    dim: Any


def axes_by_class(entries: list[Any], of: Any, results: bool = False) -> list[Any]:
    """``entries``, one for each leaf of the tree ``of``, as far as no class says otherwise."""
    if not CLASSES:
        return entries
    axes: list[Any] = []
    for node in tree.leaves(of, lambda x: type(x) in CLASSES):
        count = len(tree.leaves(node))
        own = entries[len(axes) : len(axes) + count]
        axes += _dims(node, own, results) if type(node) in CLASSES else own
    return axes


def _dims(node: Any, entries: list[Any], results: bool) -> list[Any]:
    """What the class of ``node`` makes of ``entries``, which say the same of all of its leaves."""
    if entries[:1] in ([], [None]):
        return entries
    lanes, axis = CLASSES[type(node)], entries[0]
    if results:
        marked = lanes.of_all(lambda size, part, dim: _mark(part, dim), None, node, axis)
    else:
        marked = lanes.of_lane(_mark, None, node, axis)
    leaves = tree.leaves(marked, lambda x: type(x) is _Axis)
    return [x.dim if type(x) is _Axis else None for x in leaves]


def _mark(part: Any, dim: Any) -> Any:
    return tree.map(lambda _: _Axis(dim), part)
