"""Draws by weight and draws of very many numbers: what the figures of 32 bits cannot hold."""

from __future__ import annotations

import jax
import jax.extend
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("count", [3, 1000, 100_003])
def test_what_weighs_nothing_is_not_drawn(count, dtype):
    weights = RNG.random(count).astype(dtype)
    weights[::3] = 0
    drawn = np.asarray(random.choice(random.key(0), count, (200_000,), p=weights))
    assert drawn.min() >= 0 and drawn.max() < count
    assert np.count_nonzero(weights[drawn] == 0) == 0
    counts = np.bincount(drawn // (count // 3), minlength=3)[:3]
    wanted = np.bincount(np.arange(count) // (count // 3), weights=weights.astype(float))[:3]
    np.testing.assert_allclose(counts / counts.sum(), wanted / wanted.sum(), atol=0.01)


def test_weights_of_zero_alone():
    drawn = np.asarray(random.choice(random.key(0), 4, (10,), p=np.zeros(4, np.float32)))
    assert set(drawn) <= set(range(4))


def bits_at(positions: np.ndarray, seed: int) -> np.ndarray:
    """What the counters at ``positions`` are encrypted to, by the cipher of jax."""
    words = jax.random.key_data(jax.random.key(seed))
    high = (positions >> np.uint64(32)).astype(np.uint32)
    halves = (np.full(len(positions), np.asarray(w)) for w in words)
    x, y = jax.extend.random.threefry2x32_p.bind(*halves, high, positions.astype(np.uint32))
    return np.asarray(x ^ y)


@pytest.mark.parametrize("shape", [(2**33,), (2, 2**32), (2**17, 2**16)])
def test_more_than_32_bits_count(shape):
    """Around the number at position 2**32 of so many, of which no others are made."""
    first = 2**32 - 2 if len(shape) == 1 else 2**32
    start = np.unravel_index(first, shape)
    stop = tuple(int(i) + 1 for i in start[:-1]), int(start[-1]) + 4

    def part(key):
        drawn = random.bits(key, shape)
        return lax.slice(drawn, tuple(map(int, start)), (*stop[0], stop[1])).reshape(-1)

    at = np.arange(first, first + 4, dtype=np.uint64)
    np.testing.assert_array_equal(phalanx.jit(part)(random.key(3)), bits_at(at, 3))


@pytest.mark.parametrize(
    "draw",
    [
        random.normal,
        random.rademacher,
        random.split,
        lambda key, shape: random.uniform(key, shape, minval=1.0, maxval=jnp.float32(2)),
        lambda key, shape: random.randint(key, shape, 0, 10),
        lambda key, shape: random.choice(key, 10, shape),
        lambda key, shape: random.bernoulli(key, 0.5, shape),
    ],
)
def test_distributions_of_very_many(draw):
    made = phalanx.eval_shape(lambda key: draw(key, (2**31, 4)), random.key(0))
    assert made.shape[:2] == (2**31, 4)


def test_orders_of_more_than_integers_count():
    for f in (random.permutation, random.choice):
        with pytest.raises(OverflowError, match="does not fit int32"):
            f(random.key(0), 2**33)


def test_one_number_between_bounds_of_length_1():
    key, ends = random.key(0), {"minval": jnp.zeros(1), "maxval": jnp.ones(1)}
    theirs = jax.random.uniform(jax.random.key(0), (), minval=np.zeros(1), maxval=np.ones(1))
    np.testing.assert_array_equal(random.uniform(key, (), **ends), theirs)
    assert random.uniform(key, (), minval=jnp.zeros((1, 1))).shape == (1, 1)
    with pytest.raises(ValueError, match="broadcast"):
        random.uniform(key, (), minval=jnp.zeros(2))
