"""The words of keys, each kind of word an array of its own."""

from __future__ import annotations

from typing import Any

from phalanx.core.types import typeof
from phalanx.primitives.shape import slice_dim, squeeze, stack

Words = tuple[Any, ...]


def words_in(x: Any, count: int) -> Words:
    """The first ``count`` words in the last dimension of ``x``."""
    last = typeof(x).ndim - 1
    return tuple([squeeze(slice_dim(x, i, i + 1, last), (last,)) for i in range(count)])


def side_by_side(words: Words) -> Any:
    """An array with ``words`` in its last dimension."""
    return stack(words, typeof(words[0]).ndim)
