"""Keys: what random numbers are made from, and how keys are made from keys.

A key is two 32-bit words: an element of an array, of a dtype that names the generator which reads
them, or in the old form the words themselves, an array uint32[2]. The same key always gives the
same numbers; independent numbers need independent keys, which ``split`` and ``fold_in`` make.
Everything here encrypts counters (Threefry-2x32), so results do not depend on devices or on how
arrays lie on them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.extended import KeyType, is_key, key_type
from phalanx.control.staged import staged
from phalanx.core.types import Array, ArrayType, typeof
from phalanx.ops import (
    add,
    bitcast,
    broadcast,
    convert,
    mul,
    random_unwrap,
    random_wrap,
    reshape,
    shift_right_logical,
    threefry2x32,
)
from phalanx.ops.basis import check_lengths
from phalanx.ops.shape import iota, slice_dim, stack
from phalanx.run.array import DeviceArray, keys_of, words_of

U32 = np.dtype("uint32")
U64 = np.dtype("uint64")
ZERO_WORD = np.uint32(0)
THREEFRY = key_type("threefry2x32")
_SINGLE = (ArrayType((), THREEFRY), ArrayType((2,), U32))  # a key, and one in the old form


# ---- making keys ----------------------------------------------------------------------------


def key(seed: Any, *, impl: str | None = None) -> Any:
    """The key of a seed: an array without dimensions, of dtype ``key<fry>``.

    Arrays of keys are arrays like others: they can be indexed, stacked, mapped and carried. What
    they do not have is arithmetic, or a value that NumPy could read.

    Args:
        seed: an integer, or an integer scalar array; 32 bits of it are used, 64 bits if
            ``enable_x64`` is set.
        impl: the generator; "threefry2x32" is the one there is.

    Raises:
        TypeError: the seed is not a single integer.
        ValueError: there is no such generator.

    >>> from phalanx import random
    >>> random.key(0).shape, random.key(0).dtype
    ((), key<fry>)
    """
    return _of_seed("key", seed, _dtype_of("key", impl))


def PRNGKey(seed: Any, *, impl: str | None = None) -> Any:
    """The key of a seed in its old form, an array uint32[2]; see ``key``.

    With the option ``enable_custom_prng`` it is the same as ``key``.

    >>> from phalanx import random
    >>> random.PRNGKey(7).tolist()
    [0, 7]
    """
    dtype = _dtype_of("PRNGKey", impl)
    return _of_seed("PRNGKey", seed, dtype if config.enable_custom_prng else None)


def _dtype_of(who: str, impl: str | None) -> KeyType:
    return THREEFRY if impl is None else key_type(impl, who)


def _of_seed(who: str, seed: Any, dtype: KeyType | None) -> Any:
    """The key of a seed, in its old form where ``dtype`` is None."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        if not -(2**63) <= seed < 2**64:
            raise OverflowError(f"{who}: the seed must fit 64 bits, got {seed}")
        high = (int(seed) >> 32) & 0xFFFFFFFF if config.enable_x64 else 0
        return _of_words(np.uint32(high), np.uint32(int(seed) & 0xFFFFFFFF), dtype=dtype)
    type = typeof(seed)
    if not dtypes.is_integer(type.dtype) or type.shape != ():
        raise TypeError(f"{who}: the seed must be a single integer, got {type}; use vmap for more")
    return _of_integer(seed, dtype=dtype)


@staged
def _of_words(high: Any, low: Any, *, dtype: KeyType | None) -> Any:
    return _in_form(stack([high, low], 0), dtype)


def _in_form(words: Any, dtype: KeyType | None) -> Any:
    """The keys of ``words``: of ``dtype``, or the words themselves where it is None."""
    return words if dtype is None else random_wrap(words, dtype=dtype)


@staged
def _of_integer(seed: Any, *, dtype: KeyType | None) -> Any:
    low = convert(seed, dtype=U32, weak=False)
    if typeof(seed).dtype.itemsize <= 4:
        return _in_form(stack([broadcast(ZERO_WORD, shape=(), dims=()), low], 0), dtype)
    high = shift_right_logical(bitcast(seed, dtype=U64), 32)
    return _in_form(stack([convert(high, dtype=U32, weak=False), low], 0), dtype)


def key_data(keys: Any) -> Any:
    """The words of keys, uint32[..., 2].

    Raises:
        TypeError: ``keys`` are none.

    >>> from phalanx import random
    >>> random.key_data(random.key(7)).tolist()
    [0, 7]
    """
    if not is_key(_check("key_data", keys).dtype):
        return keys
    return words_of(keys) if type(keys) is DeviceArray else random_unwrap(keys)


def wrap_key_data(data: Any, *, impl: str | None = None) -> Any:
    """The keys of which ``data``, uint32[..., 2], are the words.

    Raises:
        TypeError: ``data`` has another dtype, or another last dimension.
        ValueError: there is no generator ``impl``.

    >>> from phalanx import random
    >>> random.wrap_key_data(random.PRNGKey(7)) == random.key(7)
    Array(True, dtype=bool)
    """
    dtype = _dtype_of("wrap_key_data", impl)
    given = _check("wrap_key_data", data)
    if is_key(given.dtype):
        raise TypeError(f"wrap_key_data: words u32[..., 2] are needed, got keys already, {given}")
    return _wrapped(data, dtype)


def _wrapped(words: Any, dtype: KeyType) -> Any:
    """The keys of ``words``, in the same memory where no key is split over devices."""
    if type(words) is DeviceArray and len(words.sharding.tiles) < words.ndim:
        return keys_of(words, dtype)
    return random_wrap(words, dtype=dtype)


def key_impl(keys: Any) -> str:
    """The name of the generator that ``keys`` are for.

    Raises:
        TypeError: ``keys`` are none.

    >>> from phalanx import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    dtype = _check("key_impl", keys).dtype
    return dtype.impl if is_key(dtype) else THREEFRY.impl


def clone(keys: Any) -> Any:
    """The same keys; says that they are meant to be used again."""
    _check("clone", keys)
    return keys


def _check(who: str, keys: Any) -> ArrayType:
    """The type of ``keys``, or of words that can be keys in the old form.

    Raises:
        TypeError: ``keys`` are neither.
    """
    given = typeof(keys) if isinstance(keys, (Array, np.ndarray)) else None
    if given is not None and (
        is_key(given.dtype) or (given.dtype == U32 and given.shape[-1:] == (2,))
    ):
        return given
    raise TypeError(
        f"{who}: a key is needed, as random.key(seed) makes it, or its data u32[2]; got "
        f"{given or repr(keys)}"
    )


def single(who: str, keys: Any) -> Any:
    """``keys``, a single key in either form.

    Raises:
        TypeError: it is no key.
        ValueError: there are several.
    """
    if isinstance(keys, Array) and keys.aval in _SINGLE:
        return keys
    given = _check(who, keys)
    shape = given.shape if is_key(given.dtype) else given.shape[:-1]
    if shape:
        raise ValueError(
            f"{who}: a single key is needed, got keys of shape {shape}; use vmap to draw with "
            "each of them"
        )
    return keys


# ---- keys from keys -------------------------------------------------------------------------


def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """Independent keys, ``num`` of them or of shape ``num``.

    Args:
        key: a single key, which should not be used again.
        num: how many, or in which shape.

    Raises:
        TypeError: ``num`` is neither an integer nor a tuple of them.
        ValueError: ``num`` is negative, or there are several keys.

    >>> from phalanx import random
    >>> first, second = random.split(random.key(0))
    """
    shape = (num,) if not isinstance(num, Sequence) else tuple(num)
    try:
        shape = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise TypeError(f"split: num must be an integer or a tuple of them, got {num!r}") from None
    check_lengths("split", shape)
    return _split(single("split", key), shape=shape)


@staged
def _split(key: Any, *, shape: tuple[int, ...]) -> Any:
    return _in_form_of(key, stack(encrypted_counters(key, shape, once=True), len(shape)))


def _in_form_of(key: Any, words: Any) -> Any:
    """Keys of which ``words`` are the words, typed ones if ``key`` is."""
    dtype = typeof(key).dtype
    return _in_form(words, dtype if is_key(dtype) else None)


def split_words(key: Any, num: int) -> list:
    """``num`` independent keys in the old form, for use inside a staged function."""
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
    return _fold_in(single("fold_in", key), data)


@staged
def _fold_in(key: Any, data: Any) -> Any:
    word = convert(data, dtype=U32, weak=False)
    return _in_form_of(key, stack(threefry2x32(*_pair(key), ZERO_WORD, word, once=True), 0))


def as_words(key: Any) -> Any:
    """A key in either form as the words that it is made of."""
    return random_unwrap(key) if is_key(typeof(key).dtype) else key


def _pair(key: Any) -> tuple[Any, Any]:
    """The two words of a key in either form."""
    key = as_words(key)
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
