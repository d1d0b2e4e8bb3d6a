"""Keys: what random numbers are made from, and how keys are made from keys.

A key is a few 32-bit words: an element of an array, of a dtype that names the generator which reads
them, or in the old form the words themselves, an array uint32[2]. The same key always gives the
same numbers; independent numbers need independent keys, which ``split`` and ``fold_in`` make. The
usual generator encrypts counters (Threefry-2x32), so that results do not depend on devices or on
how arrays lie on them.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, NewType, cast

import numpy as np

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.errors import ConcretizationTypeError
from phalanx.base.extended import KEY_TYPES, KeyType, PRNGImpl, is_key, key_type
from phalanx.base.lengths import length
from phalanx.base.source import user_location, warn_user
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, ArrayType, KeyLike, typeof
from phalanx.primitives import convert, random_unwrap, random_wrap, reshape
from phalanx.primitives.basis import check_lengths
from phalanx.random.generators import U32, generator_of, source
from phalanx.random.words import Words, side_by_side
from phalanx.run.array import DeviceArray, keys_of, words_of
from phalanx.run.eager import as_array

Key = NewType("Key", Array)
Key.__doc__ = """An array of random keys, in annotations: what ``key`` and ``split`` give.

>>> import phalanx
>>> def noise(key: Key) -> phalanx.Array:
...     return phalanx.random.normal(key, (3,))
"""
KeySpec = str | KeyType | PRNGImpl | None


# ---- making keys ----------------------------------------------------------------------------


def key(seed: ArrayLike, *, impl: KeySpec = None, dtype: KeySpec = None) -> Array:
    """The key of a seed: an array without dimensions, of dtype ``key<fry>``.

    Arrays of keys are arrays like others: they can be indexed, stacked, mapped and carried. What
    they do not have is arithmetic, or a value that NumPy could read.

    Args:
        seed: an integer, or an integer scalar array; 32 bits of it are used, 64 bits if
            ``enable_x64`` is set.
        impl: the generator, by its name or its dtype: "threefry2x32", whose numbers are the same
            everywhere; "rbg", XLA's own for the platform; or "unsafe_rbg", the same, which splits
            keys faster and promises nothing of them; or one of your own, ``define_prng_impl``. By
            default that of the option ``default_prng_impl``.
        dtype: another name for ``impl``.

    Returns:
        A key, an array without dimensions.

    Raises:
        TypeError: the seed is not a single integer, or there is no such kind of generator.
        ValueError: there is no generator of that name.

    >>> from phalanx import random
    >>> random.key(0).shape, random.key(0).dtype
    ((), key<fry>)
    """
    return _of_seed("key", seed, _dtype_of("key", impl, dtype), typed=True)


def PRNGKey(seed: ArrayLike, *, impl: KeySpec = None) -> Array:
    """The key of a seed in its old form, an array uint32[2]; see ``key``.

    Functions take it for one of the generator of the option ``default_prng_impl``.

    With the option ``enable_custom_prng`` it is the same as ``key``.

    Args:
        seed: an integer, or an integer scalar array; 32 bits of it are used, 64 bits if
            ``enable_x64`` is set.
        impl: the generator, by its name or its dtype: "threefry2x32", whose numbers are the same
            everywhere; "rbg", XLA's own for the platform; or "unsafe_rbg", the same, which splits
            keys faster and promises nothing of them; or one of your own, ``define_prng_impl``. By
            default that of the option ``default_prng_impl``.

    Returns:
        uint32 [2]; [4] of "rbg".

    >>> from phalanx import random
    >>> random.PRNGKey(7).tolist()
    [0, 7]
    """
    dtype = _dtype_of("PRNGKey", impl)
    return _of_seed("PRNGKey", seed, dtype, typed=config.enable_custom_prng)


def key_dtype(impl_spec: KeySpec = None) -> KeyType:
    """The dtype of the keys of a generator.

    Args:
        impl_spec: the generator's name, or the dtype itself; None for the one that the option
            ``default_prng_impl`` names.

    Returns:
        A dtype.

    Raises:
        TypeError: it is something else.
        ValueError: there is no such generator.

    >>> from phalanx import random
    >>> random.key_dtype(), random.key_dtype("rbg")
    (key<fry>, key<rbg>)
    """
    return _dtype_of("key_dtype", impl_spec)


def _dtype_of(who: str, impl: KeySpec, dtype: KeySpec = None) -> KeyType:
    """The dtype that one of the two names, or the one that is meant by default."""
    if impl is not None and dtype is not None:
        raise TypeError(f"{who}: give impl or dtype, not both, got {impl!r} and {dtype!r}")
    spec: Any = dtype if impl is None else impl
    if isinstance(spec, KeyType):
        return spec
    if not isinstance(spec, (str, PRNGImpl, NoneType)):
        raise TypeError(
            f"{who}: a generator is meant by its name, its dtype or its declaration "
            f"(define_prng_impl), got {spec!r}"
        )
    return key_type(config.default_prng_impl if spec is None else spec, who)


def _of_seed(who: str, seed: Any, dtype: KeyType, typed: bool) -> Any:
    """The key of a seed, in its old form unless it is to be ``typed``."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        seed = _as_number(who, int(cast(int, seed)))
    try:
        type = typeof(seed)
    except TypeError:
        raise TypeError(f"{who}: the seed must be a single integer, got {seed!r}") from None
    if not dtypes.is_integer(type.dtype) or type.shape != ():
        raise TypeError(f"{who}: the seed must be a single integer, got {type}; use vmap for more")
    return _of_integer(seed, dtype=dtype, typed=typed)


def _as_number(who: str, seed: int) -> np.integer:
    """As many low bits of ``seed`` as an integer of the default dtype has."""
    if not -(2**63) <= seed < 2**64:
        raise OverflowError(f"{who}: the seed must fit 64 bits, got {seed}")
    low = np.uint64(seed % 2**64)
    if config.enable_x64:
        return low if seed >= 2**63 else low.astype(np.int64)
    return low.astype(np.int32)


@staged
def _of_integer(seed: Any, *, dtype: KeyType, typed: bool) -> Any:
    words = side_by_side(generator_of(dtype).seeded(seed))
    return random_wrap(words, dtype=dtype) if typed else _as_seen(words, dtype)


def _as_seen(words: Any, dtype: KeyType) -> Any:
    """Words in the last dimension, as the user sees keys of ``dtype``."""
    if len(dtype.key_shape) == 1:
        return words
    return reshape(words, shape=(*typeof(words).shape[:-1], *dtype.key_shape))


def key_data(keys: KeyLike) -> Array:
    """The words of keys, uint32[..., 2].

    Args:
        keys: an array of keys.

    Returns:
        uint32 of the shape of ``keys`` and a last dimension more.

    Raises:
        TypeError: ``keys`` are none.

    >>> from phalanx import random
    >>> random.key_data(random.key(7)).tolist()
    [0, 7]
    """
    dtype = _check("key_data", keys).dtype
    if not is_key(dtype):
        return _as_array(keys)
    words = words_of(keys) if type(keys) is DeviceArray else random_unwrap(keys)
    return _as_seen(words, dtype)


def wrap_key_data(key_bits_array: Any, *, impl: KeySpec = None, dtype: KeySpec = None) -> Array:
    """The keys of which ``key_bits_array``, uint32[..., 2], are the words.

    Args:
        key_bits_array: the words: four of keys of ``rbg``, and of a generator of your own what its
            ``key_shape`` says.
        impl: the generator, see ``key``.
        dtype: another name for ``impl``.

    Returns:
        Keys, of the shape of the words without the last dimension.

    Raises:
        TypeError: the array has another dtype, or another last dimension.
        ValueError: there is no generator ``impl``.

    >>> from phalanx import random
    >>> random.wrap_key_data(random.PRNGKey(7)) == random.key(7)
    Array(True, dtype=bool)
    """
    chosen = _dtype_of("wrap_key_data", impl, dtype)
    type = _type_of(key_bits_array)
    own = chosen.key_shape
    lanes = max(0, type.ndim - len(own)) if type else 0
    if type is None or type.dtype != U32 or type.shape[lanes:] != own:
        wanted = ", ".join(map(str, ("...", *own)))
        raise TypeError(
            f"wrap_key_data: the words of {chosen} are needed, u32[{wanted}], got "
            f"{type or repr(key_bits_array)}"
        )
    if len(own) == 1:
        return _wrapped(key_bits_array, chosen)
    return _wrapped(reshape(key_bits_array, shape=(*type.shape[:lanes], chosen.words)), chosen)


def _wrapped(words: Any, dtype: KeyType) -> Any:
    """The keys of ``words``, in the same memory where no key is split over devices."""
    if type(words) is DeviceArray and len(words.sharding.tiles) < words.ndim:
        return keys_of(words, dtype)
    return random_wrap(words, dtype=dtype)


def key_impl(keys: KeyLike) -> str | PRNGImpl:
    """The generator that ``keys`` are for: its name, or how it was declared.

    Args:
        keys: an array of keys.

    Returns:
        A string, or the generator that was declared.

    Raises:
        TypeError: ``keys`` are none.

    >>> from phalanx import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    dtype = _check("key_impl", keys).dtype
    return dtype.impl if is_key(dtype) else config.default_prng_impl


def clone(key: KeyLike) -> Array:
    """The same key, or keys; says that they are meant to be used again.

    Args:
        key: a key, or an array of keys.

    Returns:
        An array of keys like ``key``.

    >>> from phalanx import random
    >>> random.clone(random.key(0)) == random.key(0)
    Array(True, dtype=bool)
    """
    _check("clone", key)
    return _as_array(key)


def _as_array(keys: KeyLike) -> Array:
    return keys if isinstance(keys, Array) else as_array(keys)


def _type_of(x: Any) -> ArrayType | None:
    return typeof(x) if isinstance(x, (Array, np.ndarray)) else None


def _check(who: str, keys: Any) -> ArrayType:
    """The type of ``keys``, or of words that can be keys in the old form.

    Raises:
        TypeError: ``keys`` are neither.
        ValueError: keys in the old form are refused by the option ``legacy_prng_key``.
    """
    type = _type_of(keys)
    if type is not None and is_key(type.dtype):
        return type
    words = KEY_TYPES[config.default_prng_impl].words
    if type is not None and type.dtype == U32 and type.shape[-1:] == (words,):
        _mention_old_form(who)
        return type
    raise TypeError(
        f"{who}: a key is needed, as random.key(seed) makes it, or its data u32[{words}]; got "
        f"{type or repr(keys)}"
    )


def _mention_old_form(who: str) -> None:
    """Say that a key is given in its old form, as the option ``legacy_prng_key`` has it."""
    if config.legacy_prng_key == "allow":
        return
    message = (
        f"Legacy uint32 key array passed as key to {who}: the key at {user_location()} is an array "
        "of words; make it with random.key(seed)"
    )
    if config.legacy_prng_key == "error":
        raise ValueError(f"{message}, or set the option legacy_prng_key to 'allow'")
    warn_user(message)


def single(who: str, keys: Any) -> Any:
    """``keys``, a single key in either form.

    Raises:
        TypeError: it is no key.
        ValueError: there are several.
    """
    if isinstance(keys, Array) and keys.aval.shape == () and is_key(keys.aval.dtype):
        return keys
    type = _check(who, keys)
    shape = type.shape if is_key(type.dtype) else type.shape[:-1]
    if shape:
        raise ValueError(
            f"{who}: a single key is needed, got keys of shape {shape}; use vmap to draw with "
            "each of them"
        )
    return keys


# ---- keys from keys -------------------------------------------------------------------------


def split(key: KeyLike, num: int | tuple[int, ...] = 2) -> Array:
    """Independent keys, ``num`` of them or of shape ``num``.

    Args:
        key: a single key, which should not be used again.
        num: how many, or in which shape.

    Returns:
        Keys of shape [num], in the form of ``key``.

    Raises:
        TypeError: ``num`` is neither an integer nor a tuple of them.
        ValueError: ``num`` is negative, or there are several keys.

    >>> from phalanx import random
    >>> first, second = random.split(random.key(0))
    """
    count: Any = num
    try:
        shape = tuple(map(length, count if np.ndim(count) else (count,)))
    except ConcretizationTypeError:  # says what is traced, and where
        raise
    except TypeError:
        raise TypeError(f"split: num must be an integer or a tuple of them, got {num!r}") from None
    check_lengths("split", shape)
    return _split(single("split", key), shape=shape)


@staged
def _split(key: Any, *, shape: tuple[int, ...]) -> Any:
    return _in_form_of(key, source(key).split(shape).words)


def _in_form_of(key: Any, words: Words) -> Any:
    """Keys of which ``words`` are the words, typed ones if ``key`` is."""
    dtype = typeof(key).dtype
    whole = side_by_side(words)
    return random_wrap(whole, dtype=dtype) if is_key(dtype) else whole


def fold_in(key: KeyLike, data: Any) -> Array:
    """A key that depends on ``key`` and on the integer ``data``: one per step, device, layer.

    Args:
        key: a single key.
        data: an integer, or an integer scalar array, such as ``lax.axis_index(...)``.

    Returns:
        A key, of the form of ``key``.

    Raises:
        ValueError: ``key`` is several keys.
        TypeError: ``data`` is not a single integer.

    >>> from phalanx import random
    >>> key = random.fold_in(random.key(0), 7)
    """
    key = single("fold_in", key)
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        data = dtypes.scalar(int(cast(int, data)), U32)
    type = typeof(data)
    if not dtypes.is_integer(type.dtype) or type.shape != ():
        raise TypeError(f"fold_in: data must be a single integer, got {type}; use vmap for more")
    return _fold_in(key, data)


@staged
def _fold_in(key: Any, data: Any) -> Any:
    word = convert(data, dtype=U32, weak=False)
    own = source(key)
    return _in_form_of(key, own.generator.folded(own.words, word))
