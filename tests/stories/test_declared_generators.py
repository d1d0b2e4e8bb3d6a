"""Generators that users declare draw, split and travel as ours do."""

import functools
import gc
import math
import pickle
import weakref

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import errors, random
from phalanx.base.extended import key_type
from phalanx.experimental import checkpoint
from phalanx.laws import check_batch, check_jit, check_pmap

LENGTHS = [(2,), (2, 1), (1, 2)]  # in which a key of two words can be seen


def seeded(number):
    return random.key_data(random.key(number))


def split(key, shape):
    return random.key_data(random.split(random.wrap_key_data(key), shape))


def drawn(key, width, shape):
    return random.bits(random.wrap_key_data(key), shape, f"uint{width}")


def folded(key, number):
    return random.key_data(random.fold_in(random.wrap_key_data(key), number))


@functools.cache
def threefry(key_shape=(2,)):
    """Our generator, as a user would declare it, with keys of another shape."""
    whole, tail = (lambda key: key.reshape(2)), key_shape
    return random.define_prng_impl(
        key_shape=key_shape,
        seed=lambda number: seeded(number).reshape(tail),
        split=lambda key, shape: split(whole(key), shape).reshape(*shape, *tail),
        random_bits=lambda key, width, shape: drawn(whole(key), width, shape),
        fold_in=lambda key, number: folded(whole(key), number).reshape(tail),
        name="ours again",
        tag="again",
    )


MINE = random.define_prng_impl(
    key_shape=(2,), seed=seeded, split=split, random_bits=drawn, fold_in=folded, tag="mine"
)
KEY = random.key(7, impl=MINE)
KEYS = random.split(KEY, 5)


def words(keys):
    return np.asarray(random.key_data(keys))


# every way in which functions of the library use a generator
DRAWN = {
    "bits": lambda key: random.bits(key, (9,), "uint8"),
    "split": lambda key: words(random.split(key, (2, 3))).reshape(2, 3, 2),
    "fold_in": lambda key: words(random.fold_in(key, 3)).reshape(2),
    "normal": lambda key: random.normal(key, (9,)),
    "permutation": lambda key: random.permutation(key, 9),
    "gamma": lambda key: random.gamma(key, np.float32([0.5, 3])),
    "poisson": lambda key: random.poisson(key, np.float32([2, 30])),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_draws_as_threefry_gives_the_same(name):
    found = DRAWN[name](random.key(7, impl=threefry((1, 2))))
    np.testing.assert_array_equal(found, DRAWN[name](random.key(7)))


@pytest.mark.parametrize("shape", LENGTHS)
def test_keys_are_seen_in_the_shape_that_was_declared(shape):
    impl = threefry(shape)
    keys = random.split(random.key(7, impl=impl), (3, 2))
    assert keys.shape == (3, 2) and str(keys.dtype) == "key<again>"
    assert random.key_data(keys).shape == (3, 2, *shape)
    assert random.PRNGKey(7, impl=impl).shape == shape
    again = random.wrap_key_data(random.key_data(keys), impl=impl)
    assert again.dtype is keys.dtype and bool((again == keys).all())
    refused = r"wrap_key_data: the words of key<again> are needed, u32\[\.\.\., "
    with pytest.raises(TypeError, match=refused):
        random.wrap_key_data(np.zeros(5, np.uint32), impl=impl)


def test_a_key_without_dimensions():
    def bits(key, width, shape):
        return (jnp.arange(math.prod(shape)).reshape(shape) + key).astype(f"uint{width}")

    counted = random.define_prng_impl(
        key_shape=(),
        seed=lambda number: number.astype("uint32"),
        split=lambda key, shape: bits(key, 32, shape),
        random_bits=bits,
        fold_in=lambda key, number: key + number,
    )
    keys = random.split(random.key(-2, impl=counted), 4)
    assert words(keys).tolist() == [2**32 - 2, 2**32 - 1, 0, 1]
    assert random.bits(random.fold_in(keys[2], 5), (3,)).tolist() == [5, 6, 7]
    assert phalanx.vmap(random.bits)(keys).tolist() == words(keys).tolist()


def draws(key):
    first, second = random.split(random.fold_in(key, 3))
    return random.normal(first, (3,)), random.exponential(second), random.key_data(second)


def test_laws():
    check_jit(draws, (KEY,))
    check_batch(draws, (KEYS,))


@pytest.mark.spmd
def test_lanes():
    check_pmap(draws, (KEYS,), order=0)
    each = phalanx.pmap(phalanx.pmap(random.bits))(random.split(KEY, (3, 2)))
    assert len({*each.ravel().tolist()}) == 6


def test_keys_are_carried_and_chosen():
    def step(key, _):
        key, own = random.split(key)
        return key, random.bits(own)

    last, bits = phalanx.lax.scan(step, KEY, length=3)
    assert last.dtype is KEY.dtype and len({*bits.tolist()}) == 3
    chosen = jnp.where(np.array([True, False] * 2 + [True]), KEYS, KEY)
    assert bool((chosen[::2] == KEYS[::2]).all()) and bool((chosen[1::2] == KEY).all())
    with pytest.raises(TypeError, match="no common dtype"):
        jnp.concatenate([KEYS, random.split(random.key(0))])


def test_what_is_declared_names_the_generator():
    assert random.key_impl(KEY) is MINE and random.key_dtype(MINE) is KEY.dtype
    assert random.key(7, impl=random.key_impl(KEY)) == KEY
    equal = random.define_prng_impl(
        key_shape=[2], seed=seeded, split=split, random_bits=drawn, fold_in=folded, tag="mine"
    )
    assert equal == MINE and random.key_dtype(equal) is KEY.dtype
    assert random.key_dtype(threefry()) is not KEY.dtype
    copied = pickle.loads(pickle.dumps(KEYS))
    assert copied.dtype is KEYS.dtype and bool((copied == KEYS).all())


def test_seeds_of_64_bits():
    seen = []
    impl = random.define_prng_impl(
        key_shape=(2,), seed=lambda number: seen.append(number.dtype) or seeded(number),
        split=split, random_bits=drawn, fold_in=folded,
    )  # fmt: skip
    with phalanx.enable_x64(True):
        assert words(random.key(2**40 + 3, impl=impl)).tolist() == [256, 3]
    assert words(random.key(2**40 + 3, impl=impl)).tolist() == [0, 3]
    assert [*map(str, seen)] == ["int64", "int32"]


@pytest.mark.parametrize(
    ("what", "gives", "message"),
    [
        ("seed", lambda number: number, r"seed of the generator 'bad', used at .*, must return "
         r"uint32\[2\], got i32\[\]"),
        ("split", lambda key, shape: key, r"split of .* must return uint32\[3,2\], got u32\[2\]"),
        ("random_bits", lambda *_: None, r"random_bits of .* must return uint32\[\], got None"),
        ("fold_in", lambda key, number: key * 1.0, r"fold_in of .* uint32\[2\], got f32\[2\]"),
    ],
)  # fmt: skip
def test_what_a_function_gives_is_checked(what, gives, message):
    functions = {"seed": seeded, "split": split, "random_bits": drawn, "fold_in": folded}
    bad = random.define_prng_impl(key_shape=(2,), **{**functions, what: gives}, name="bad")
    use = {"seed": lambda key: key, "split": lambda key: random.split(key, 3)}
    use |= {"random_bits": random.bits, "fold_in": lambda key: random.fold_in(key, 3)}
    with pytest.raises(TypeError, match=message):
        use[what](random.key(0, impl=bad))


def test_what_is_declared_is_checked():
    functions = {"seed": seeded, "split": split, "random_bits": drawn, "fold_in": folded}
    with pytest.raises(TypeError, match="split must be a function, got 3"):
        random.define_prng_impl(key_shape=(2,), **{**functions, "split": 3})
    with pytest.raises(ValueError, match=r"at least one word, got key_shape \(2, 0\)"):
        random.define_prng_impl(key_shape=(2, 0), **functions)
    with pytest.raises(TypeError, match=r"by its name, its dtype or its declaration"):
        random.key(0, impl=draws)


def test_files_do_not_hold_keys_of_generators_without_a_name(tmp_path):
    with pytest.raises(TypeError, match=r"save: a file knows generators by their names"):
        checkpoint.save(tmp_path, 0, {"key": KEY})
    exported = phalanx.export.export(phalanx.jit(lambda key: random.bits(key)))(KEY)
    assert exported.call(KEY) == random.bits(KEY)
    with pytest.raises(TypeError, match=r"serialize: .*random\.key_data"):
        exported.serialize()


def named(name, key_shape=(2,)):
    return random.define_prng_impl(
        key_shape=key_shape, seed=lambda n: seeded(n).reshape(key_shape), split=split,
        random_bits=drawn, fold_in=folded, name=name, tag="kept",
    )  # fmt: skip


def test_files_know_generators_by_their_names(tmp_path):
    first = named("kept", (2, 1))
    keys = random.key(7, impl=first)[None]
    checkpoint.save(tmp_path, 0, {"keys": keys})
    taken = phalanx.jit(lambda keys: keys[0])
    blob = phalanx.export.export(taken)(keys).serialize()
    again = named("kept", (2, 1))  # declared anew, as another process does
    assert again != first
    restored = checkpoint.restore(tmp_path)["keys"]
    assert restored.dtype is key_type(again)
    np.testing.assert_array_equal(words(restored), words(keys))
    given = phalanx.export.deserialize(blob).call(restored)
    assert given.dtype is key_type(again)
    np.testing.assert_array_equal(words(given), words(keys[0]))
    like = {"keys": phalanx.ShapeDtypeStruct((1,), key_type(again))}
    assert checkpoint.restore(tmp_path, like)["keys"].dtype is key_type(again)
    with pytest.raises(errors.PhalanxError, match=r"asked for .*key<kept>"):
        checkpoint.restore(tmp_path, {"keys": phalanx.ShapeDtypeStruct((1,), keys.dtype)})


def test_a_generator_that_was_not_declared_is_named(tmp_path):
    checkpoint.save(tmp_path, 0, {"keys": random.key(7, impl=named("gone"))})
    blob = phalanx.export.export(phalanx.jit(lambda key: key))(
        random.key(7, impl=named("gone"))
    ).serialize()
    phalanx.clear_caches()
    gc.collect()
    needed = r"key<kept> of 'gone', uint32\[2\] is the dtype .* define_prng_impl\(name=\.\.\.\)"
    with pytest.raises(ValueError, match=needed):
        checkpoint.restore(tmp_path)
    with pytest.raises(ValueError, match=needed):
        phalanx.export.deserialize(blob)


def test_a_generator_that_nobody_uses_goes():
    impl = random.define_prng_impl(
        key_shape=(2,), seed=lambda number: seeded(number),
        split=split, random_bits=drawn, fold_in=folded,
    )  # fmt: skip
    dtype = weakref.ref(key_type(impl))
    random.bits(random.key(0, impl=impl))
    del impl
    phalanx.clear_caches()
    gc.collect()
    assert dtype() is None
