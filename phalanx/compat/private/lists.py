"""Functions of lists and of names, as interpreters of others take them from ``jax._src.util``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from phalanx.api.arguments import dress
from phalanx.compat.api_util import safe_map, safe_zip

__all__ = [
    "concatenate", "curry", "merge_lists", "partition_list", "prod", "safe_map", "safe_zip",
    "split_list", "subvals", "unzip2", "unzip3", "wraps",
]  # fmt: skip


def unzip2(xys: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first of all pairs, and the second."""
    firsts, seconds = _columns(xys, 2)
    return firsts, seconds


def unzip3(
    triples: Iterable[tuple[Any, Any, Any]],
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The first of all triples, the second and the third."""
    firsts, seconds, thirds = _columns(triples, 3)
    return firsts, seconds, thirds


def _columns(rows: Iterable[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    every = list(rows)
    return [tuple([row[i] for row in every]) for i in range(count)]


def concatenate(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """All elements, in one list."""
    return list(itertools.chain.from_iterable(lists))


def split_list(elements: Sequence[Any], lengths: Sequence[int]) -> list[list[Any]]:
    """Parts of these lengths, and the rest."""
    ends = [0, *itertools.accumulate(lengths), len(elements)]
    return [list(elements[a:b]) for a, b in itertools.pairwise(ends)]


def partition_list(marks: Sequence[bool], elements: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The elements that are not marked, and those that are."""
    every = safe_zip(marks, elements)
    return [x for mark, x in every if not mark], [x for mark, x in every if mark]


def merge_lists(marks: Sequence[bool], unmarked: Sequence[Any], marked: Sequence[Any]) -> list[Any]:
    """The list of which ``partition_list`` makes these two."""
    left, right = iter(unmarked), iter(marked)
    return [next(right if mark else left) for mark in marks]


def subvals(elements: Sequence[Any], pairs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """``elements``, but for those at the positions of ``pairs``."""
    every = list(elements)
    for position, value in pairs:
        every[position] = value
    return tuple(every)


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """``curry(f)(*a)(*b)`` is ``f(*a, *b)``."""
    return functools.partial(functools.partial, f)


def wraps(fun: Callable[..., Any], **_: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that gives a function the name and the documentation of ``fun``."""
    return lambda wrapper: dress(wrapper, fun)
