"""Keys of XLA's own generators against those of installed jax, and as lanes of each other."""

import pickle

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import random

jax = pytest.importorskip("jax")
IMPLS = ["rbg", "unsafe_rbg"]
EVERY = ["threefry2x32", *IMPLS]

DRAWN = {
    "split": lambda random, key: random.split(key, (2, 3)),
    "fold_in": lambda random, key: random.fold_in(random.split(key, 3)[1], 9),
    "bits": lambda random, key: random.bits(key, (5, 3)),
    "bits of 8": lambda random, key: random.bits(key, (5,), "uint8"),
    "bits of 16": lambda random, key: random.bits(key, (3, 3), "uint16"),
    "uniform": lambda random, key: random.uniform(key, (50,)),
    "normal": lambda random, key: random.normal(key, (50,), "bfloat16"),
    "randint": lambda random, key: random.randint(key, (50,), 0, 100),
    "permutation": lambda random, key: random.permutation(key, 50),
    "gamma": lambda random, key: random.gamma(key, np.float32([0.3, 1, 5]), (2, 3)),
    "multinomial": lambda random, key: random.multinomial(key, 10.0, np.float32([0.2, 0.3, 0.5])),
}


def plain(x, random):
    """The elements, or the words of keys."""
    return np.asarray(random.key_data(x) if "key<" in str(x.dtype) else x)


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", DRAWN)
def test_the_same_bits(name, impl):
    found = DRAWN[name](random, random.key(7, impl=impl))
    wanted = DRAWN[name](jax.random, jax.random.key(7, impl=impl))
    assert str(found.dtype) == str(wanted.dtype)
    assert np.array_equal(plain(found, random), plain(wanted, jax.random))


@pytest.mark.parametrize("impl", EVERY)
@pytest.mark.parametrize("name", DRAWN)
def test_the_same_bits_as_formerly(name, impl):
    with phalanx.threefry_partitionable(False), jax.threefry_partitionable(False):
        test_the_same_bits(name, impl)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_bits_of_64_and_how_many_are_drawn_formerly(count):
    with phalanx.threefry_partitionable(False), jax.threefry_partitionable(False):
        with phalanx.enable_x64(True), jax.enable_x64(True):
            found, wanted = (r.bits(r.key(1), (count,), "uint64") for r in (random, jax.random))
            assert np.array_equal(found, wanted)
        found, wanted = (r.bits(r.key(1), (count,), "uint8") for r in (random, jax.random))
        assert np.array_equal(found, wanted)


def test_functions_that_were_compiled_draw_as_the_option_says():
    draw = phalanx.jit(lambda key: random.normal(key, (3,)))
    now = draw(random.key(3))
    with phalanx.threefry_partitionable(False), jax.threefry_partitionable(False):
        wanted = jax.random.normal(jax.random.key(3), (3,))
        assert np.allclose(draw(random.key(3)), wanted) and not np.allclose(now, wanted)
        keys = random.split(random.key(3), 2)
        each = np.stack([draw(key) for key in keys])
        assert np.array_equal(phalanx.pmap(draw)(keys), each)
    assert np.array_equal(draw(random.key(3)), now)


@pytest.mark.parametrize("impl", IMPLS)
def test_seeds_of_64_bits(impl):
    with phalanx.enable_x64(True), jax.enable_x64(True):
        found, wanted = (r.key(2**40 + 3, impl=impl) for r in (random, jax.random))
        assert np.array_equal(random.key_data(found), jax.random.key_data(wanted))
        assert np.array_equal(random.bits(found, (5,)), jax.random.bits(wanted, (5,)))


@pytest.mark.parametrize("impl", IMPLS)
def test_lanes_draw_what_each_draws_by_itself(impl):
    keys = random.split(random.key(7, impl=impl), 3)
    for draw in (lambda k: random.normal(k, (3, 2)), lambda k: random.key_data(random.split(k))):
        each = np.stack([draw(k) for k in keys])
        assert np.array_equal(phalanx.vmap(draw)(keys), each)
        assert np.array_equal(phalanx.jit(phalanx.vmap(draw))(keys), each)


@pytest.mark.spmd
def test_lanes_on_devices():
    keys = random.split(random.key(7, impl="rbg"), 6)
    found = phalanx.pmap(lambda k: random.uniform(k, (2,)))(keys)
    assert np.array_equal(found, np.stack([random.uniform(k, (2,)) for k in keys]))


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_are_arrays(impl):
    keys = random.split(random.key(7, impl=impl), 4)
    assert keys.dtype == random.key_dtype(impl) and random.key_impl(keys) == impl
    assert random.key_data(keys).shape == (4, 4)
    rebuilt = random.wrap_key_data(random.key_data(keys), dtype=random.key_dtype(impl))
    assert bool((rebuilt == keys).all()) and bool((pickle.loads(pickle.dumps(keys)) == keys).all())
    chosen = jnp.where(jnp.arange(4) > 1, keys, keys[0])
    assert bool((chosen[:2] == keys[0]).all()) and bool((chosen[2:] == keys[2:]).all())
    drawn = phalanx.lax.scan(lambda c, key: (c, random.uniform(key)), 0, keys)[1]
    assert np.array_equal(drawn, [random.uniform(key) for key in keys])
    with pytest.raises(TypeError, match=r"the words of key<u?rbg> are needed, u32\[..., 4\]"):
        random.wrap_key_data(np.zeros(2, np.uint32), impl=impl)


def test_names_of_generators():
    assert str(random.key_dtype()) == "key<fry>"
    assert random.key(0, dtype="rbg") == random.key(0, impl=random.key_dtype("rbg"))
    with pytest.raises(ValueError, match="impl must be 'threefry2x32' or 'rbg' or 'unsafe_rbg'"):
        random.key(0, impl="mersenne")
    with pytest.raises(TypeError, match="by its name, its dtype or its decl"):
        random.key_dtype(np.float32)
    with pytest.raises(TypeError, match="give impl or dtype"):
        random.key(0, impl="rbg", dtype="rbg")


# ---- options ----------------------------------------------------------------------------------


def test_the_generator_that_is_meant_by_default():
    with phalanx.default_prng_impl("rbg"), jax.default_prng_impl("rbg"):
        old = random.PRNGKey(3)
        assert np.array_equal(old, jax.random.PRNGKey(3)) and random.key_impl(old) == "rbg"
        assert str(random.key(3).dtype) == "key<rbg>"
        wanted = jax.random.normal(jax.random.PRNGKey(3), (5,))
        assert np.array_equal(random.normal(old, (5,)), wanted)
        assert np.array_equal(random.split(old), jax.random.split(jax.random.PRNGKey(3)))
        assert np.array_equal(random.normal(random.key(3), (5,)), wanted)
        with pytest.raises(TypeError, match=r"its data u32\[4\]; got u32\[2\]"):
            random.normal(np.zeros(2, np.uint32))
    assert random.PRNGKey(3).shape == (2,)


def test_keys_in_their_old_form_are_mentioned():
    old = random.PRNGKey(0)
    with phalanx.legacy_prng_key("error"):
        with pytest.raises(ValueError, match=r"is an array of words; make it with random\.key"):
            random.normal(old)
        assert random.normal(random.key(0)).shape == ()
    with phalanx.legacy_prng_key("warn"), pytest.warns(UserWarning, match="split: the key at"):
        random.split(old)
