"""Generators that users declare: functions of single keys, as arrays of words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

import phalanx.numpy as jnp
from phalanx.base.extended import UNNAMED, WORD, PRNGImpl, declare
from phalanx.base.source import user_location
from phalanx.core.types import Array, Shape, typeof
from phalanx.primitives import reshape
from phalanx.primitives.basis import check_lengths
from phalanx.random.words import Words, side_by_side, words_in


def define_prng_impl(
    *,
    key_shape: Sequence[int],
    seed: Callable[[Any], Any],
    split: Callable[[Any, Shape], Any],
    random_bits: Callable[[Any, int, Shape], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = UNNAMED,
    tag: str = "?",
) -> PRNGImpl:
    """A generator of random numbers of your own, for ``random.key(seed, impl=...)``.

    The functions see single keys, arrays uint32 of ``key_shape``. They are traced, once for each
    shape, and mapped where there are more keys; what they do besides is not seen again. Generators
    are the same if all that is declared of them is.

    Args:
        key_shape: the shape of a key.
        seed: ``seed(number)``, the key of an integer, an array without dimensions.
        split: ``split(key, shape)``, independent keys of ``shape``, uint32[*shape, *key_shape].
        random_bits: ``random_bits(key, width, shape)``, unsigned integers of ``width`` 8, 16, 32 or
            64 bits.
        fold_in: ``fold_in(key, number)``, the key made of one and of an integer.
        name: what messages call it. Files that hold its keys, checkpoints and exported functions,
            know it by that: whoever reads them declares it before.
        tag: the name of its dtype is ``key<tag>``.

    Returns:
        A generator, to be given as ``impl``.

    Raises:
        TypeError: what is to be a function is none, or a length is no integer.
        ValueError: a key has no words.

    >>> from phalanx import lax, random
    >>> def bits(key, width, shape):
    ...     counters = lax.iota(f"uint{width}", math.prod(shape)).reshape(shape)
    ...     return (counters + key.astype(counters.dtype)) * 0x9D
    >>> mine = define_prng_impl(
    ...     key_shape=(),
    ...     seed=lambda number: number.astype("uint32"),
    ...     split=lambda key, shape: bits(key, 32, shape),
    ...     random_bits=bits,
    ...     fold_in=lambda key, number: key ^ number,
    ...     tag="mine",
    ... )
    >>> random.split(random.key(7, impl=mine)).dtype
    key<mine>
    """
    shape = tuple(key_shape)
    check_lengths("define_prng_impl", shape)
    if not math.prod(shape):
        raise ValueError(f"define_prng_impl: a key has at least one word, got key_shape {shape}")
    declared = PRNGImpl(shape, seed, split, random_bits, fold_in, name, tag)
    for what in ("seed", "split", "random_bits", "fold_in"):
        if not callable(getattr(declared, what)):
            value = getattr(declared, what)
            raise TypeError(f"define_prng_impl: {what} must be a function, got {value!r}")
    declare(declared)
    return declared


class DeclaredGenerator:
    """What a user declares, as a generator like ours.

    Args:
        impl: the declaration.
    """

    def __init__(self, impl: PRNGImpl) -> None:
        self._impl = impl
        self.words = math.prod(impl.key_shape)

    def seeded(self, seed: Any) -> Words:
        """The key of an integer."""
        return self._keys("seed", self._impl.seed(seed), ())

    def split(self, key: Words, shape: Shape) -> Words:
        """Independent keys of ``shape``, made of one."""
        return self._keys("split", self._impl.split(self._array(key), shape), shape)

    def children(self, keys: Words, count: int) -> list[Words]:
        """``count`` independent keys, made of each of ``keys``."""
        every = jnp.vectorize(lambda *key: self.split(key, (count,)))(*keys)
        return [*zip(*[words_in(word, count) for word in every], strict=True)]

    def folded(self, key: Words, data: Any) -> Words:
        """A key made of one and of the word ``data``."""
        return self._keys("fold_in", self._impl.fold_in(self._array(key), data), ())

    def bits(self, key: Words, shape: Shape, width: int) -> Any:
        """Random unsigned integers of ``width`` 8, 16, 32 or 64 bits, drawn with one key."""
        drawn = self._impl.random_bits(self._array(key), width, shape)
        return self._checked("random_bits", drawn, shape, np.dtype(f"uint{width}"))

    def bits_of_each(self, keys: Words, width: int) -> Any:
        """One such integer for each of ``keys``."""
        return jnp.vectorize(lambda *key: self.bits(key, (), width))(*keys)

    def _array(self, key: Words) -> Any:
        """A single key as the user sees it."""
        return reshape(side_by_side(key), shape=self._impl.key_shape)

    def _keys(self, who: str, value: Any, shape: Shape) -> Words:
        """The words of keys of ``shape`` that the user's function ``who`` has given."""
        keys = self._checked(who, value, (*shape, *self._impl.key_shape), WORD)
        return words_in(reshape(keys, shape=(*shape, self.words)), self.words)

    def _checked(self, who: str, value: Any, shape: Shape, dtype: np.dtype) -> Any:
        if not isinstance(value, (Array, np.ndarray, np.generic)):
            kind: Any = repr(value)
        else:
            kind = typeof(value)
            if (kind.shape, kind.dtype) == (shape, dtype):
                return cast(Any, value)
        raise TypeError(
            f"{who} of the generator {self._impl.name!r}, used at {user_location()}, must return "
            f"{dtype}[{','.join(map(str, shape))}], got {kind}"
        )
