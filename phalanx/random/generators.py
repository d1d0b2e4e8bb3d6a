"""Generators: what makes keys of seeds and of keys, and random bits of keys.

A generator sees the words of keys, each kind of word an array of its own: arrays without dimensions
for a single key, or of any shape for as many keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.extended import PRNGImpl, is_key
from phalanx.base.lengths import fits
from phalanx.core.blocks import Blocks
from phalanx.core.types import Shape, typeof
from phalanx.primitives import (
    add,
    bitcast,
    broadcast,
    concatenate,
    convert,
    eq,
    mul,
    or_,
    random_unwrap,
    reshape,
    rng_bit_generator,
    select,
    shift_left,
    shift_right_logical,
    threefry2x32,
    xor,
)
from phalanx.primitives.shape import iota, slice_dim, squeeze, stack
from phalanx.random.declared import DeclaredGenerator
from phalanx.random.words import Words, words_in

U32 = np.dtype("uint32")
U64 = np.dtype("uint64")
ZERO_WORD = np.uint32(0)


class Threefry:
    """Counters encrypted with the key: results do not depend on devices (``threefry2x32``)."""

    words = 2

    def seeded(self, seed: Any) -> Words:
        """The key of an integer: its high and low 32 bits."""
        low = convert(seed, dtype=U32, weak=False)
        if typeof(seed).dtype.itemsize <= 4:
            return broadcast(ZERO_WORD, shape=(), dims=()), low
        high = shift_right_logical(bitcast(seed, dtype=U64), 32)
        return convert(high, dtype=U32, weak=False), low

    def split(self, key: Words, shape: Shape) -> Words:
        """Independent keys of ``shape``, made of one."""
        return _encrypted_counters(key, shape, once=True)

    def children(self, keys: Words, count: int) -> list[Words]:
        """``count`` independent keys, made of each of ``keys``."""
        return [threefry2x32(*keys, ZERO_WORD, np.uint32(i), once=True) for i in range(count)]

    def folded(self, key: Words, data: Any) -> Words:
        """A key made of one and of the word ``data``."""
        return threefry2x32(*key, ZERO_WORD, data, once=True)

    def bits(self, key: Words, shape: Shape, width: int) -> Any:
        """Random unsigned integers of ``width`` 8, 16, 32 or 64 bits, drawn with one key."""
        x, y = _encrypted_counters(key, shape)
        return _joined(x, y, width)

    def bits_of_each(self, keys: Words, width: int) -> Any:
        """One such integer for each of ``keys``."""
        x, y = threefry2x32(*keys, ZERO_WORD, ZERO_WORD, once=False)
        return _joined(x, y, width)


class FormerThreefry(Threefry):
    """The same encryption of other counters: a number depends on how many are drawn with it.

    What is drawn is a stream of words, in which the two words of a counter are half of its length
    apart (``threefry_partitionable=False``).
    """

    def split(self, key: Words, shape: Shape) -> Words:
        """Independent keys of ``shape``, made of one."""
        rows = reshape(_stream(key, 2 * math.prod(shape), once=True), shape=(*shape, 2))
        return words_in(rows, self.words)

    def children(self, keys: Words, count: int) -> list[Words]:
        """``count`` independent keys, made of each of ``keys``."""
        pairs = [
            threefry2x32(*keys, np.uint32(i), np.uint32(i + count), once=True) for i in range(count)
        ]
        stream = [word for half in zip(*pairs, strict=True) for word in half]
        return [*zip(stream[::2], stream[1::2], strict=True)]

    def bits(self, key: Words, shape: Shape, width: int) -> Any:
        """Random unsigned integers of ``width`` 8, 16, 32 or 64 bits, drawn with one key."""
        count = math.prod(shape)
        drawn = _stream(key, Blocks(count * width, 32).length)
        if width == 64:
            high, low = slice_dim(drawn, 0, count, 0), slice_dim(drawn, count, 2 * count, 0)
            drawn = _joined(high, low, width)
        elif width < 32:
            drawn = slice_dim(_pieces(drawn, width), 0, count, 0)
        return reshape(drawn, shape=shape)

    def bits_of_each(self, keys: Words, width: int) -> Any:
        """One such integer for each of ``keys``."""
        x, y = threefry2x32(*keys, ZERO_WORD, np.uint32(width == 64), once=False)
        if width == 64:
            return _joined(x, y, width)
        return x if width == 32 else convert(x, dtype=unsigned(width), weak=False)


THREEFRY = Threefry()
FORMER_THREEFRY = FormerThreefry()


def threefry() -> Threefry:
    """The one that the option ``threefry_partitionable`` means."""
    return THREEFRY if config.threefry_partitionable else FORMER_THREEFRY


class BitGenerator:
    """XLA's generator for the platform (``rbg``): two keys of Threefry side by side are its state.

    Its bits are fast, but may be others on another platform, in another version of XLA or over
    other devices. Keys are made as those of Threefry are.
    """

    words = 4

    def seeded(self, seed: Any) -> Words:
        """The key of an integer."""
        return THREEFRY.seeded(seed) * 2

    def split(self, key: Words, shape: Shape) -> Words:
        """Independent keys of ``shape``, made of one."""
        return *threefry().split(key[:2], shape), *threefry().split(key[2:], shape)

    def children(self, keys: Words, count: int) -> list[Words]:
        """``count`` independent keys, made of each of ``keys``."""
        halves = threefry().children(keys[:2], count), threefry().children(keys[2:], count)
        return [(*left, *right) for left, right in zip(*halves, strict=True)]

    def folded(self, key: Words, data: Any) -> Words:
        """A key made of one and of the word ``data``."""
        return *THREEFRY.folded(key[:2], data), *THREEFRY.folded(key[2:], data)

    def bits(self, key: Words, shape: Shape, width: int) -> Any:
        """Random unsigned integers of ``width`` 8, 16, 32 or 64 bits, drawn with each key."""
        drawn = _generated(key, shape, U64 if width == 64 else U32)
        return drawn if width >= 32 else convert(drawn, dtype=unsigned(width), weak=False)

    def bits_of_each(self, keys: Words, width: int) -> Any:
        """One such integer for each of ``keys``."""
        return self.bits(keys, (), width)


class UnsafeBitGenerator(BitGenerator):
    """The same, which makes keys, too, of its own bits (``unsafe_rbg``): nothing is known of
    whether they are independent.
    """

    def split(self, key: Words, shape: Shape) -> Words:
        """Keys of ``shape``, every tenth of the rows that one key draws."""
        count = math.prod(shape)
        rows = _generated(key, (count, _STRIDE * self.words), U32)
        return tuple([reshape(word, shape=shape) for word in words_in(rows, self.words)])

    def children(self, keys: Words, count: int) -> list[Words]:
        """``count`` independent keys, made of each of ``keys``."""
        return self._rows(keys, range(0, _STRIDE * count, _STRIDE))

    def folded(self, key: Words, data: Any) -> Words:
        """A key made of one and of the last row that the word ``data`` draws."""
        (drawn,) = self._rows(self.seeded(data), [_STRIDE - 1])
        return tuple(xor(x, y) for x, y in zip(key, drawn, strict=True))

    def _rows(self, keys: Words, numbers: Sequence[int]) -> list[Words]:
        """Rows ``numbers`` of those that each of ``keys`` draws."""
        rows = _generated(keys, (numbers[-1] + 1, self.words), U32)
        dim = typeof(keys[-1]).ndim
        each = [squeeze(slice_dim(rows, i, i + 1, dim), (dim,)) for i in numbers]
        return [words_in(row, self.words) for row in each]


_STRIDE = 10  # rows from one key to the next

Generator = Threefry | BitGenerator | DeclaredGenerator
_GENERATORS: dict[str, Generator] = {"rbg": BitGenerator(), "unsafe_rbg": UnsafeBitGenerator()}


# ---- keys inside of staged functions --------------------------------------------------------


class Source(NamedTuple):
    """A key, or several of one shape, that numbers are drawn with."""

    generator: Generator
    words: Words

    def of(self, words: Words) -> Source:
        """What draws with other words."""
        return Source(self.generator, words)

    def children(self, count: int) -> list[Source]:
        """``count`` independent keys, made of each key."""
        return [*map(self.of, self.generator.children(self.words, count))]

    def split(self, shape: Shape) -> Source:
        """Independent keys of ``shape``, made of one."""
        return self.of(self.generator.split(self.words, shape))


def source(key: Any) -> Source:
    """A single key, typed or in the old form, as what numbers are drawn with."""
    if isinstance(key, Source):
        return key
    generator = generator_of(typeof(key).dtype)
    words = random_unwrap(key) if is_key(typeof(key).dtype) else key
    return Source(generator, words_in(words, generator.words))


def generator_of(dtype: Any) -> Generator:
    """The generator of keys of a dtype; of words, the one that is meant by default."""
    impl = dtype.impl if is_key(dtype) else config.default_prng_impl
    if isinstance(impl, PRNGImpl):
        return DeclaredGenerator(impl)
    return _GENERATORS.get(impl) or threefry()


def sources(key: Any, num: int) -> list[Source]:
    """``num`` independent keys, made of one."""
    generator = source(key)
    each = [words_in(word, num) for word in generator.split((num,)).words]
    return [*map(generator.of, zip(*each, strict=True))]


# ---- bits -----------------------------------------------------------------------------------


def unsigned(width: int) -> np.dtype:
    """The dtype of unsigned integers of ``width`` bits."""
    return np.dtype(f"uint{width}")


def _generated(keys: Words, shape: Shape, dtype: np.dtype) -> Any:
    """Bits of ``shape`` that XLA's generator draws with each of ``keys``."""
    lanes = typeof(keys[-1]).shape
    state = stack([_repeated(word, lanes) for word in keys], len(lanes))
    return rng_bit_generator(state, shape=shape, dtype=dtype, algorithm="default")[1]


def _repeated(word: Any, shape: Shape) -> Any:
    """A word, which may be a constant, as an array of ``shape``."""
    return word if typeof(word).shape == shape != () else broadcast(word, shape=shape, dims=())


def _joined(x: Any, y: Any, width: int) -> Any:
    """Random unsigned integers of ``width`` bits, of two random words each."""
    if width == 64:
        high = shift_left(convert(x, dtype=U64, weak=False), 32)
        return or_(high, convert(y, dtype=U64, weak=False))
    both = xor(x, y)
    return both if width == 32 else convert(both, dtype=unsigned(width), weak=False)


def _encrypted_counters(key: Words, shape: Shape, once: bool = False) -> Words:
    """Two arrays of random words: the positions in an array of ``shape``, encrypted."""
    k0, k1 = (broadcast(k, shape=shape, dims=()) for k in key)
    return threefry2x32(k0, k1, *_positions(shape), once=once)


def _stream(key: Words, count: int, once: bool = False) -> Any:
    """``count`` random words: the numbers from 0 on, encrypted in pairs from the two halves.

    Raises:
        ValueError: there are more of them than 32 bits count.
    """
    if count > 2**32:
        raise ValueError(
            f"random: {count} words of 32 bits are too many for one key where "
            "threefry_partitionable is False: draw them with several keys"
        )
    halves = Blocks(count, 2)
    half = halves.length
    low = iota(dtype=U32, shape=(half,), dim=0)
    high = add(low, np.uint32(half))
    if halves.padding:  # the last has no partner
        high = select(eq(low, np.uint32(half - 1)), np.zeros(half, U32), high)
    k0, k1 = (broadcast(k, shape=(half,), dims=()) for k in key)
    both = concatenate(*threefry2x32(k0, k1, low, high, once=once), dim=0)
    return slice_dim(both, 0, count, 0)


def _pieces(words: Any, width: int) -> Any:
    """Words of 32 bits cut into integers of ``width``, those of the lowest bits first."""
    each = stack([shift_right_logical(words, at) for at in range(0, 32, width)], 1)
    flat = reshape(each, shape=(math.prod(typeof(each).shape),))
    return convert(flat, dtype=unsigned(width), weak=False)


def _positions(shape: Shape) -> tuple[Any, Any]:
    """The row-major position of each element, as its high and low 32 bits."""
    if fits(math.prod(shape), 2**32):
        return ZERO_WORD, _row_major(shape, U32)
    wide = _row_major(shape, U64)
    high = convert(shift_right_logical(wide, _number(32, wide)), dtype=U32, weak=False)
    return high, convert(wide, dtype=U32, weak=False)


def _number(n: int, like: Any) -> Any:
    """``n`` beside an array of words: a constant of 64 bits would need ``enable_x64``."""
    if typeof(like).dtype == U32:
        return n
    halves = [convert(np.uint32(half), dtype=U64, weak=False) for half in (n >> 32, n & 0xFFFFFFFF)]
    high, low = (broadcast(half, shape=typeof(like).shape, dims=()) for half in halves)
    if n < 2**32:
        return low
    return or_(shift_left(high, _number(32, like)), low)


def _row_major(shape: Shape, dtype: np.dtype) -> Any:
    total: Any = None
    stride = 1
    for dim in reversed(range(len(shape))):
        if shape[dim] != 1:
            places = iota(dtype=dtype, shape=shape, dim=dim)
            term = mul(places, _number(stride, places)) if stride != 1 else places
            total = term if total is None else add(total, term)
        stride *= shape[dim]
    return dtypes.scalar(0, dtype) if total is None else total
