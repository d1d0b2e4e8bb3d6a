"""What primitives do with keys: they move them as wholes, compare them, or refuse them in words."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.base.extended import key_type
from phalanx.core.primitive import REGISTRY, Example
from phalanx.core.types import ArrayType, typeof
from phalanx.laws.primitives import Case

FRY = key_type("threefry2x32")
I32 = np.dtype("int32")
MOVE = [
    "all_gather", "all_gather_alike", "all_to_all", "broadcast", "concatenate", "device_put",
    "dynamic_slice", "dynamic_update_slice", "gather", "guarded", "name",
    "optimization_barrier", "pad", "ppermute", "pcast", "pvary", "reshape", "reshard", "reverse",
    "rounded_apart", "scatter", "select", "slice", "stop_gradient", "transpose",
]  # fmt: skip
COMPARE = ["eq", "ne"]
OF_THEIR_OWN = ["convert", "random_wrap", "random_unwrap"]

# Element 0 is what collectives give who receives nothing, the last one what lies outside.
COUNT = 200
WORDS = np.random.default_rng(0).integers(0, 2**32, (COUNT, 2), np.uint32)
WORDS[0], WORDS[-1] = 0, 2**32 - 1


def of_dtype(example, dtype):
    """The example with arrays of ``dtype`` in place of all of the dtype of the first, no mask."""
    given = [a for a in example.args if isinstance(a, ArrayType)]
    if not given:
        return None
    first = next((a for a in given if a.dtype != bool), given[0])
    args = tuple(
        (first if isinstance(a, np.generic) else ArrayType(a.shape, a.dtype)).update(dtype=dtype)
        if a.dtype == first.dtype
        else a
        for a in example.args
    )
    return Example(args, example.params, example.axes)


def takes_floats(example):
    """Whether the example is told by its dtype from one whose indices would become keys, too."""
    return any(isinstance(a, ArrayType) and a.dtype.kind in "fc" for a in example.args)


def cases(names, chosen=lambda example: True):
    return [
        pytest.param(REGISTRY[name], example, id=f"{name}-{i}")
        for name in sorted(names)
        for i, example in enumerate(REGISTRY[name].examples)
        if of_dtype(example, FRY) is not None and chosen(example)
    ]


def drawn(prim, example):
    """The primitive on numbers of keys, these numbers, and the same for the keys themselves."""
    params = {k: v for k, v in example.params.items() if k != "fill"}
    example = Example(example.args, params, example.axes)
    numbered, keyed = (Case(prim, of_dtype(example, d)) for d in (I32, FRY))
    ids = numbered.operands()
    kinds = [keyed.example.args[i] for i in keyed.free]
    source = np.random.default_rng(1)
    keys = list(ids)
    for i, kind in enumerate(kinds):
        if kind.dtype is FRY:
            ids[i] = source.integers(1, COUNT - 1, ids[i].shape).astype(I32)
            keys[i] = random.wrap_key_data(WORDS[ids[i]])
    return numbered, ids, keyed, keys


@pytest.mark.parametrize("how", [lambda f: f, phalanx.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("prim, example", cases(MOVE, takes_floats))
def test_keys_move_as_their_numbers_do(prim, example, how):
    numbered, ids, keyed, keys = drawn(prim, example)
    wanted = numbered.tree(numbered(*ids))
    found = keyed.tree(how(keyed)(*keys))
    assert len(wanted) == len(found)
    assert any(y.dtype is FRY for y in found)
    for x, y in zip(wanted, found, strict=True):
        if y.dtype is FRY:
            assert y.shape == x.shape
            place = np.where(np.asarray(x) < 0, COUNT - 1, np.asarray(x))
            assert np.array_equal(random.key_data(y), WORDS[place])
        else:
            assert np.array_equal(x, y)


@pytest.mark.parametrize("prim, example", cases(COMPARE))
def test_keys_are_equal_as_wholes(prim, example):
    numbered, ids, keyed, keys = drawn(prim, example)
    ids[1] = np.where(ids[0] % 2, ids[0], ids[1])
    keys[1] = random.wrap_key_data(WORDS[ids[1]])
    assert np.array_equal(keyed(*keys), numbered(*ids))


def test_keys_that_share_a_word_differ():
    words = np.uint32([[1, 2], [1, 3], [4, 2], [1, 2]])
    keys = random.wrap_key_data(words)
    assert (keys == keys[0]).tolist() == [True, False, False, True]
    assert (keys != keys[0]).tolist() == [False, True, True, False]


def test_no_key_is_nan():
    keys = random.split(random.key(0), 3)
    assert bool(phalanx.numpy.array_equal(keys, keys, equal_nan=True))
    assert not phalanx.numpy.array_equal(keys, keys[::-1], equal_nan=True)


@pytest.mark.parametrize("prim, example", cases(set(REGISTRY) - {*MOVE, *COMPARE, *OF_THEIR_OWN}))
def test_all_others_refuse_keys_in_words(prim, example):
    keyed = of_dtype(example, FRY)
    types = [a if isinstance(a, ArrayType) else typeof(a) for a in keyed.args]
    with pytest.raises(TypeError, match=r"key<fry>\[.*keys are no numbers.*random\.key_data"):
        prim.type(*types, **keyed.params)


def test_keys_convert_to_their_own_dtype_alone():
    key = random.key(0)
    assert bool(lax.convert_element_type(key, key.dtype) == key)
    assert bool(key.astype(key.dtype) == key)
    for dtype in ("float32", "uint32", bool):
        with pytest.raises(TypeError, match="keys are no numbers"):
            key.astype(dtype)
    with pytest.raises(TypeError, match="cannot become key<fry>"):
        phalanx.numpy.arange(3).astype(key.dtype)


def test_keys_are_sorted_along_with_numbers():
    keys = random.split(random.key(0), 3)
    numbers, found = lax.sort((np.int32([2, 0, 1]), keys), num_keys=1)
    assert numbers.tolist() == [0, 1, 2]
    assert np.array_equal(random.key_data(found), random.key_data(keys)[np.array([1, 2, 0])])


def test_keys_are_close_where_they_are_equal():
    keys = random.split(random.key(0), 3)
    np.testing.assert_array_equal(jnp.isclose(keys, keys[1]), [False, True, False])
    assert jnp.allclose(keys, keys) and not jnp.allclose(keys, keys[0])


@pytest.mark.parametrize("error", [TypeError, ValueError])  # the operand is wrong in both ways
@pytest.mark.parametrize("method", ["set", "add", "mul", "min", "max", "divide", "power"])
def test_keys_are_not_written_among_numbers(method, error):
    def write(x, key):
        return getattr(x.at[0], method)(key)

    for f in (write, phalanx.jit(write)):
        with pytest.raises(error, match="keys are no numbers: draw numbers with them"):
            f(jnp.zeros(3), random.key(0))
