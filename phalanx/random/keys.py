"""Keys: what random numbers are made from, and how keys are made from keys.

A key is two 32-bit words. The same key always gives the same numbers; independent numbers
need independent keys, which ``split`` and ``fold_in`` make. Everything here encrypts counters
(Threefry-2x32), so results do not depend on devices or on how arrays lie on them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.tree import register_pytree_node_class
from phalanx.control.staged import staged
from phalanx.core.types import typeof
from phalanx.ops import (
    add,
    bitcast,
    broadcast,
    convert,
    eq,
    mul,
    reduce_and,
    reshape,
    shift_right_logical,
    threefry2x32,
)
from phalanx.ops.shape import broadcast_to, iota, slice_dim, stack

U32 = np.dtype("uint32")
U64 = np.dtype("uint64")
ZERO_WORD = np.uint32(0)


# ---- typed keys -----------------------------------------------------------------------------


class KeyType:
    """The dtype of typed keys: two 32-bit words, under the generator that reads them."""

    __slots__ = ()
    name = "key<fry>"
    itemsize = 8

    def __repr__(self) -> str:
        return self.name


KEY_TYPE = KeyType()


@register_pytree_node_class
class KeyArray:
    """An array of keys. In trees it is a node with one leaf: its words, uint32[..., 2].

    >>> from phalanx import random
    >>> keys = random.split(random.key(0), 3)
    >>> keys.shape, keys.dtype, len(keys)
    ((3,), key<fry>, 3)
    """

    __slots__ = ("_words",)
    dtype = KEY_TYPE

    def __init__(self, words: Any) -> None:
        self._words = words

    def tree_flatten(self) -> tuple[tuple, None]:
        return (self._words,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Sequence) -> KeyArray:
        return cls(*children)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, not counting the two words of a key."""
        return tuple(self._words.shape[:-1])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of keys."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a single key; it has no dimensions")
        return self.shape[0]

    def __getitem__(self, index: Any) -> KeyArray:
        if isinstance(index, int) and self.shape:
            return KeyArray(self._words[index])
        entries = index if isinstance(index, tuple) else (index,)
        if not any(e is Ellipsis for e in entries):
            entries = (*entries, Ellipsis)
        used = sum(_dims_indexed(e) for e in entries)
        if used > self.ndim:
            raise IndexError(
                f"too many indices for keys of shape {self.shape}: {used}, but there are "
                f"{self.ndim} dimensions"
            )
        return KeyArray(self._words[(*entries, slice(None))])

    def __iter__(self) -> Iterator[KeyArray]:
        return map(KeyArray, self._words) if len(self) else iter(())

    def reshape(self, *shape: Any) -> KeyArray:
        """The same keys in another shape; one length may be -1."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return KeyArray(self._words.reshape((*_completed(wanted, self.size), 2)))

    def ravel(self) -> KeyArray:
        """The same keys in one dimension."""
        return self.reshape(-1)

    flatten = ravel

    def block_until_ready(self) -> KeyArray:
        """Wait until the keys are computed."""
        self._words.block_until_ready()
        return self

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, KeyArray):
            return NotImplemented
        shape = np.broadcast_shapes(self._words.shape, other._words.shape)
        same = eq(broadcast_to(self._words, shape), broadcast_to(other._words, shape))
        return reduce_and(same, dims=(len(shape) - 1,))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"KeyArray({self.shape}, dtype={self.dtype}) overlaying:\n{self._words}"


def _dims_indexed(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    is_mask = getattr(entry, "dtype", None) == np.dtype(bool)
    return entry.ndim if is_mask else 1


def _completed(shape: Any, size: int) -> tuple[int, ...]:
    """``shape`` with its -1, if any, replaced."""
    wanted = tuple(operator.index(n) for n in shape)
    known = math.prod(n for n in wanted if n != -1)
    return tuple(size // known if n == -1 and known else n for n in wanted)


# ---- making keys ----------------------------------------------------------------------------


def key(seed: Any, *, impl: str | None = None) -> KeyArray:
    """The key of a seed.

    Args:
        seed: an integer, or an integer scalar array; 32 bits of it are used, 64 bits if
            ``enable_x64`` is set.
        impl: the generator; "threefry2x32" is the one there is.

    Raises:
        TypeError: the seed is not a single integer.

    >>> from phalanx import random
    >>> random.key(0).shape
    ()
    """
    return KeyArray(_words_of_seed("key", seed, impl))


def PRNGKey(seed: Any, *, impl: str | None = None) -> Any:
    """The key of a seed in its old form, an array uint32[2]; see ``key``.

    >>> from phalanx import random
    >>> random.PRNGKey(7).tolist()
    [0, 7]
    """
    return _words_of_seed("PRNGKey", seed, impl)


def _words_of_seed(who: str, seed: Any, impl: str | None) -> Any:
    if impl not in (None, "threefry2x32"):
        raise ValueError(f"{who}: impl must be 'threefry2x32', got {impl!r}")
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        if not -(2**63) <= seed < 2**64:
            raise OverflowError(f"{who}: the seed must fit 64 bits, got {seed}")
        high = (int(seed) >> 32) & 0xFFFFFFFF if config.enable_x64 else 0
        return _joined_words(np.uint32(high), np.uint32(int(seed) & 0xFFFFFFFF))
    type = typeof(seed)
    if not dtypes.is_integer(type.dtype) or type.shape != ():
        raise TypeError(f"{who}: the seed must be a single integer, got {type}; use vmap for more")
    return _words_of_array(seed)


@staged
def _joined_words(high: Any, low: Any) -> Any:
    return stack([high, low], 0)


@staged
def _words_of_array(seed: Any) -> Any:
    dtype = typeof(seed).dtype
    low = convert(seed, dtype=U32, weak=False)
    if dtype.itemsize <= 4:
        return stack([broadcast(ZERO_WORD, shape=(), dims=()), low], 0)
    high = shift_right_logical(bitcast(seed, dtype=U64), 32)
    return stack([convert(high, dtype=U32, weak=False), low], 0)


def key_data(keys: Any) -> Any:
    """The words of keys, uint32[..., 2].

    >>> from phalanx import random
    >>> random.key_data(random.key(7)).tolist()
    [0, 7]
    """
    return words("key_data", keys)


def wrap_key_data(data: Any, *, impl: str | None = None) -> KeyArray:
    """Typed keys from their words, uint32[..., 2].

    >>> from phalanx import random
    >>> random.wrap_key_data(random.PRNGKey(7)) == random.key(7)
    Array(True, dtype=bool)
    """
    if impl not in (None, "threefry2x32"):
        raise ValueError(f"wrap_key_data: impl must be 'threefry2x32', got {impl!r}")
    return KeyArray(words("wrap_key_data", data))


def key_impl(keys: Any) -> str:
    """The name of the generator that ``keys`` are for."""
    words("key_impl", keys)
    return "threefry2x32"


def clone(keys: Any) -> Any:
    """The same keys; says that they are meant to be used again."""
    return keys


def words(who: str, keys: Any) -> Any:
    """The words of typed keys, or of keys in the old form.

    Raises:
        TypeError: ``keys`` are neither.
    """
    if isinstance(keys, KeyArray):
        return keys._words
    shape, dtype = getattr(keys, "shape", None), getattr(keys, "dtype", None)
    if shape is None or dtype != U32 or tuple(shape[-1:]) != (2,):
        found = typeof(keys) if shape is not None and dtype is not None else repr(keys)
        raise TypeError(
            f"{who}: a key is needed, as random.key(seed) makes it, or its data u32[2]; got {found}"
        )
    return keys


def single(who: str, keys: Any) -> Any:
    """The words, uint32[2], of a single key.

    Raises:
        TypeError: it is no key.
        ValueError: there are several.
    """
    found = words(who, keys)
    if tuple(found.shape) != (2,):
        raise ValueError(
            f"{who}: a single key is needed, got keys of shape {tuple(found.shape[:-1])}; "
            "use vmap to draw with each of them"
        )
    return found


def same_form(keys: Any, found: Any) -> Any:
    """The words ``found`` as typed keys if ``keys`` are."""
    return KeyArray(found) if isinstance(keys, KeyArray) else found


# ---- keys from keys -------------------------------------------------------------------------


def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """Independent keys, ``num`` of them or of shape ``num``.

    Args:
        key: a single key, which should not be used again.
        num: how many, or in which shape.

    >>> from phalanx import random
    >>> first, second = random.split(random.key(0))
    """
    shape = (num,) if not isinstance(num, Sequence) else tuple(num)
    try:
        shape = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise TypeError(f"split: num must be an integer or a tuple of them, got {num!r}") from None
    return same_form(key, _split(single("split", key), shape=shape))


@staged
def _split(key: Any, *, shape: tuple[int, ...]) -> Any:
    return stack(encrypted_counters(key, shape, once=True), len(shape))


def split_words(key: Any, num: int) -> list:
    """The words of ``num`` independent keys, for use inside a staged function."""
    pairs = stack(encrypted_counters(key, (num,), once=True), 1)
    return [reshape(slice_dim(pairs, i, i + 1, 0), shape=(2,)) for i in range(num)]


def fold_in(key: Any, data: Any) -> Any:
    """A key that depends on ``key`` and on the integer ``data``: one per step, device, layer.

    Args:
        key: a single key.
        data: an integer, or an integer scalar array, such as ``lax.axis_index(...)``.

    Raises:
        TypeError: ``data`` is not a single integer.

    >>> from phalanx import random
    >>> key = random.fold_in(random.key(0), 7)
    """
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        data = dtypes.scalar(int(data), U32)
    type = typeof(data)
    if not dtypes.is_integer(type.dtype) or type.shape != ():
        raise TypeError(f"fold_in: data must be a single integer, got {type}; use vmap for more")
    return same_form(key, _fold_in(single("fold_in", key), data))


@staged
def _fold_in(key: Any, data: Any) -> Any:
    word = convert(data, dtype=U32, weak=False)
    return stack(threefry2x32(*_pair(key), ZERO_WORD, word, once=True), 0)


def _pair(key: Any) -> tuple[Any, Any]:
    return tuple(reshape(slice_dim(key, i, i + 1, 0), shape=()) for i in (0, 1))  # type: ignore[return-value]


def encrypted_counters(
    key: Any, shape: tuple[int, ...], once: bool = False
) -> tuple[Any, Any]:
    """Two arrays of random words: the positions in an array of ``shape``, encrypted."""
    k0, k1 = (broadcast(k, shape=shape, dims=()) for k in _pair(key))
    return threefry2x32(k0, k1, *_positions(shape), once=once)


def _positions(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The row-major position of each element, as its high and low 32 bits."""
    if math.prod(shape) <= 2**32:
        return ZERO_WORD, _row_major(shape, U32)
    wide = _row_major(shape, U64)
    high = convert(shift_right_logical(wide, 32), dtype=U32, weak=False)
    return high, convert(wide, dtype=U32, weak=False)


def _row_major(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    total: Any = None
    stride = 1
    for dim in reversed(range(len(shape))):
        if shape[dim] > 1:
            places = iota(dtype=dtype, shape=shape, dim=dim)
            term = mul(places, stride) if stride > 1 else places
            total = term if total is None else add(total, term)
        stride *= shape[dim]
    return dtypes.scalar(0, dtype) if total is None else total
