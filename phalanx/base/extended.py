"""Dtypes that NumPy does not have: their elements are read by operations of their own alone.

There is one kind, random keys. An element is a row of words, but that is the business of the
generator that the key is for: no arithmetic applies to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NoReturn
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct

from phalanx.base.recent import InternTable

WORD = np.dtype("uint32")
ADVICE = (
    "keys are no numbers: draw numbers with them, as random.normal(key) does, or take their words "
    "with random.key_data"
)


class extended(np.generic):
    """The kind of all dtypes that NumPy does not have, for ``issubdtype``.

    >>> from phalanx import dtypes, random
    >>> dtypes.issubdtype(random.key(0).dtype, dtypes.extended)
    True
    """


class prng_key(extended):
    """The kind of the dtypes of random keys, for ``issubdtype``.

    >>> from phalanx import dtypes, random
    >>> dtypes.issubdtype(random.key(0).dtype, dtypes.prng_key)
    True
    """

    def __new__(cls, *_: Any) -> NoReturn:
        raise TypeError(f"a key cannot be made of a number but by random.key(seed); {ADVICE}")


UNNAMED: Final = "<unnamed>"


class PRNGImpl(Struct, frozen=True, weakref=True):
    """A generator as a user declares it: functions of single keys, arrays uint32 of ``key_shape``.

    Attributes:
        key_shape: the shape of a key.
        seed: from an integer to a key.
        split: from a key and a shape to so many keys.
        random_bits: from a key, a number of bits and a shape to unsigned integers.
        fold_in: from a key and an integer to a key.
        name: in messages, and in files, which know it by that.
        tag: in the name of the dtype.
    """

    key_shape: tuple[int, ...]
    seed: Callable[..., Any]
    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]
    name: str
    tag: str

    def __repr__(self) -> str:
        return f"PRNGImpl({self.name!r})"


class KeyType:
    """The dtype of random keys of one generator.

    Attributes:
        impl: the generator: the name of one of ours, or a declaration.
        name: the dtype's own.
        key_shape: the shape of a key to its user.
        words: how many words uint32 make a key.
    """

    __slots__ = ("__weakref__", "impl", "key_shape", "name", "words")
    type = prng_key

    def __init__(self, impl: str | PRNGImpl, tag: str, key_shape: tuple[int, ...]) -> None:
        self.impl = impl
        self.name = f"key<{tag}>"
        self.key_shape = key_shape
        self.words = math.prod(key_shape)

    @property
    def itemsize(self) -> int:
        """The number of bytes of a key."""
        return self.words * WORD.itemsize

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return key_type, (self.impl,)


KEY_TYPES = {
    t.impl: t
    for t in (
        KeyType("threefry2x32", "fry", (2,)),
        KeyType("rbg", "rbg", (4,)),
        KeyType("unsafe_rbg", "urbg", (4,)),
    )
}


_declared: InternTable[KeyType] = InternTable(64)


def key_type(impl: str | PRNGImpl, who: str = "key_type") -> KeyType:
    """The dtype of the keys of the generator ``impl``; ``who`` asks, for the message.

    Raises:
        ValueError: there is no such generator.

    >>> key_type("threefry2x32")
    key<fry>
    """
    if isinstance(impl, PRNGImpl):
        return _declared[impl] or _declared.add(impl, KeyType(impl, impl.tag, impl.key_shape))
    if impl not in KEY_TYPES:
        names = " or ".join(map(repr, KEY_TYPES))
        raise ValueError(f"{who}: impl must be {names}, got {impl!r}")
    return KEY_TYPES[impl]


_by_name: WeakValueDictionary[str, PRNGImpl] = WeakValueDictionary()


def declare(impl: PRNGImpl) -> None:
    """Let files mean ``impl`` by its name: what was declared last by one name is meant."""
    _by_name[_in_files(impl)] = impl


def _in_files(impl: PRNGImpl) -> str:
    return f"key<{impl.tag}> of {impl.name!r}, uint32{[*impl.key_shape]}"


def name_in_files(dtype: Any, who: str) -> str:
    """What ``who`` writes for ``dtype``.

    Raises:
        TypeError: it is of keys whose generator was declared without a name.
    """
    impl = dtype.impl if is_key(dtype) else None
    if not isinstance(impl, PRNGImpl):
        return dtype.name
    if impl.name == UNNAMED:
        raise TypeError(
            f"{who}: a file knows generators by their names, and that of these keys has none; "
            "declare it with define_prng_impl(name=...), or take the words, random.key_data(keys), "
            "and make keys of them again with random.wrap_key_data"
        )
    return _in_files(impl)


def key_type_in_files(name: str) -> KeyType:
    """The dtype that a file calls ``name``, of keys of a generator of a user's.

    Raises:
        ValueError: there is none, or not yet.
    """
    impl = _by_name.get(name)
    if impl is not None:
        return key_type(impl)
    if name.startswith("key<"):
        raise ValueError(
            f"{name} is the dtype of random keys whose generator was not declared in this process; "
            "declare it by that name, with define_prng_impl(name=...), before the file is read"
        )
    raise ValueError(f"{name!r} is a dtype that is not known here; another version wrote it")


def is_key(dtype: Any) -> bool:
    """Whether ``dtype`` is one of random keys."""
    return type(dtype) is KeyType
