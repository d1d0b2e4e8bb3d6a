"""What ``jax.extend.random`` has: generators, named by the dtypes of their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phalanx.numpy as jnp
from phalanx import random
from phalanx.api.vmap import vmap
from phalanx.base.extended import WORD
from phalanx.compat.operations import threefry2x32_p  # type: ignore[attr-defined]
from phalanx.primitives import threefry2x32
from phalanx.random import define_prng_impl
from phalanx.random.keys import KeySpec

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip

threefry_prng_impl = random.key_dtype("threefry2x32")
rbg_prng_impl = random.key_dtype("rbg")
unsafe_rbg_prng_impl = random.key_dtype("unsafe_rbg")


def seed_with_impl(impl: KeySpec, seed: Any) -> Any:
    """The key of a seed, for a generator."""
    return random.key(seed, impl=impl)


def random_seed(seeds: Any, impl: KeySpec) -> Any:
    """The key of each of ``seeds``, for a generator."""

    def seeded(seed: Any) -> Any:
        return random.key(seed, impl=impl)

    of_all: Callable[[Any], Any] = seeded
    for _ in range(jnp.ndim(seeds)):
        of_all = vmap(of_all)
    return of_all(seeds)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """Counters encrypted under a key of two words: the first half goes with the second.

    Where there is an odd number of counters, a zero goes with the last of the first half.
    """
    counters = jnp.asarray(count, WORD)
    halves = jnp.split(jnp.pad(counters.ravel(), (0, counters.size % 2)), 2)
    key = [jnp.full_like(halves[0], word) for word in keypair]
    whole = jnp.concatenate(threefry2x32(*key, *halves, once=False))
    return whole[: counters.size].reshape(counters.shape)
