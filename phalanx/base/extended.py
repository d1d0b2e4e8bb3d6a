"""Dtypes that NumPy does not have: their elements are read by operations of their own alone.

There is one kind, random keys. An element is a row of words, but that is the business of the
generator that the key is for: no arithmetic applies to it.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

WORD = np.dtype("uint32")
ADVICE = (
    "keys are no numbers: draw numbers with them, as random.normal(key) does, or take their words "
    "with random.key_data"
)


class extended(np.generic):
    """The kind of all dtypes that NumPy does not have, for ``issubdtype``."""


class prng_key(extended):
    """The kind of the dtypes of random keys, for ``issubdtype``."""

    def __new__(cls, *_: Any) -> NoReturn:
        raise TypeError(f"a key cannot be made of a number but by random.key(seed); {ADVICE}")


class KeyType:
    """The dtype of random keys of one generator.

    Attributes:
        impl: the generator's name.
        name: the dtype's own.
        words: how many words uint32 make a key.
    """

    __slots__ = ("impl", "name", "words")
    type = prng_key

    def __init__(self, impl: str, tag: str, words: int) -> None:
        self.impl = impl
        self.name = f"key<{tag}>"
        self.words = words

    @property
    def itemsize(self) -> int:
        """The number of bytes of a key."""
        return self.words * WORD.itemsize

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return key_type, (self.impl,)


KEY_TYPES = {
    t.impl: t
    for t in (
        KeyType("threefry2x32", "fry", 2),
        KeyType("rbg", "rbg", 4),
        KeyType("unsafe_rbg", "urbg", 4),
    )
}


def key_type(impl: str, who: str = "key_type") -> KeyType:
    """The dtype of the keys of the generator ``impl``; ``who`` asks, for the message.

    Raises:
        ValueError: there is no such generator.

    >>> key_type("threefry2x32")
    key<fry>
    """
    if impl not in KEY_TYPES:
        names = " or ".join(map(repr, KEY_TYPES))
        raise ValueError(f"{who}: impl must be {names}, got {impl!r}")
    return KEY_TYPES[impl]


def is_key(dtype: Any) -> bool:
    """Whether ``dtype`` is one of random keys."""
    return type(dtype) is KeyType
