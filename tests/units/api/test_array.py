"""Arrays: values on the host, indexing, updates, pickling, exchange with NumPy, life and death."""

import copy
import math
import operator
import pickle
from collections.abc import Hashable

import ml_dtypes
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.errors import ConcretizationTypeError, DeletedArray

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def x():
    return jnp.array(HOST)


# ---- what it is ---------------------------------------------------------------------------------


def test_attributes(x):
    assert (x.shape, x.dtype, x.ndim, x.size) == ((2, 3, 4), np.float32, 3, 24)
    assert x.nbytes == 96 and x.itemsize == 4
    assert len(x) == 2
    assert isinstance(x, phalanx.Array)
    assert not x.weak_type and jnp.asarray(1.0).weak_type


def test_32_bit_dtypes_by_default():
    assert jnp.array(np.arange(2)).dtype == np.int32
    assert jnp.array([1.5]).dtype == np.float32
    with phalanx.config.override(enable_x64=True):
        assert jnp.array([1.5]).dtype == np.float64


def test_it_is_immutable(x):
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1
    with pytest.raises((AttributeError, TypeError)):
        x.shape = (24,)
    host = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        host[0] = 1
    copied = np.array(x)
    copied[0] = 1


def test_it_takes_attributes_that_programs_set_and_copies_do_not(x):
    x.trainable = False
    assert x.trainable is False and not hasattr(x + 1, "trainable")
    with pytest.raises(AttributeError):
        x.shape = (6,)


def test_it_has_no_hash(x):
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError):
        set([x])


@pytest.mark.parametrize("transformed", [phalanx.jit, phalanx.vmap, phalanx.pmap, phalanx.grad])
def test_python_tells_by_the_protocol_that_it_has_no_hash(transformed):
    told = []

    def f(x):
        told.append(isinstance(x, Hashable))
        return x

    values = jnp.float32(2.0) if transformed is phalanx.grad else jnp.arange(4.0)
    transformed(f)(values)
    assert told == [False]
    assert not isinstance(values, Hashable)
    assert not isinstance(phalanx.random.key(0), Hashable)


# ---- values on the host -------------------------------------------------------------------------


def test_numbers():
    assert (int(jnp.array(3)), float(jnp.array(2.5)), complex(jnp.array(1j))) == (3, 2.5, 1j)
    assert bool(jnp.array(True)) and not jnp.array([0.0])
    assert operator.index(jnp.array(2)) == 2 and [10, 20, 30][jnp.array(1)] == 20
    assert list(range(jnp.array(3))) == [0, 1, 2]
    assert jnp.array(3).item() == 3 and type(jnp.array(3).item()) is int
    assert jnp.array([[1.5]]).item() == 1.5
    assert jnp.arange(4).item(2) == 2
    assert round(jnp.array(2.567), 1) == pytest.approx(2.6)


def test_numbers_need_a_single_element(x):
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match="Only scalar arrays"):
            convert(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError, match="index"):
        operator.index(jnp.array(1.0))
    with pytest.raises(ValueError):
        x.item()


def test_lists_and_iteration(x):
    assert x.tolist() == HOST.tolist()
    assert jnp.array(5).tolist() == 5
    assert len(list(x)) == 2
    for row, expected in zip(x, HOST, strict=True):
        assert isinstance(row, phalanx.Array)
        np.testing.assert_array_equal(row, expected)
    with pytest.raises(TypeError, match="iteration"):
        iter(jnp.array(1.0))
    with pytest.raises(TypeError):
        len(jnp.array(1.0))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "float32", "bool", "complex64"])
def test_bytes_in_the_opposite_order(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    swapped = phalanx.jit(lambda x: x.byteswap())(jnp.array(values))
    assert np.asarray(swapped).tobytes() == values.byteswap().tobytes()


def test_methods_take_what_numpys_functions_take(x):
    kept = x.compress(jnp.array([False, True]), axis=0, size=2, fill_value=7)
    assert kept.tolist() == [HOST[1].tolist(), np.full((3, 4), 7).tolist()]
    assert x.view(jnp.int32, type=None).dtype == jnp.int32
    with pytest.raises(NotImplementedError, match="type must be None"):
        x.view(type=np.ndarray)


def test_formats():
    assert f"{jnp.array(3.14159):.2f}" == "3.14" and f"{jnp.array(7):04d}" == "0007"
    assert f"{jnp.arange(3)}" == "[0 1 2]"
    assert str(jnp.arange(3)) == "[0 1 2]"
    assert repr(jnp.arange(3)) == "Array([0, 1, 2], dtype=int32)"
    assert repr(jnp.asarray(1.0)) == "Array(1., dtype=float32, weak_type=True)"
    assert repr(jnp.ones((0, 2))) == "Array([], shape=(0, 2), dtype=float32)"
    assert "bfloat16" in repr(jnp.ones(2, jnp.bfloat16))


def test_numpy_takes_it_as_an_array(x):
    np.testing.assert_array_equal(np.asarray(x), HOST)
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x, copy=True).flags.writeable
    np.testing.assert_array_equal(np.add(HOST, np.asarray(x)), 2 * HOST)
    assert np.asarray(jnp.ones(2, jnp.bfloat16)).dtype == ml_dtypes.bfloat16


def test_operators_with_numpy_on_the_left_give_arrays(x):
    for found in (HOST + x, 2 * x, np.float32(2) * x, HOST @ x.mT if hasattr(x, "mT") else x + x):
        assert isinstance(found, phalanx.Array)
    np.testing.assert_array_equal(HOST - x, np.zeros_like(HOST))


# ---- indexing -----------------------------------------------------------------------------------

INDICES = [
    0, -1, np.int32(1), slice(None), slice(1, None), slice(None, None, -1), slice(2, 0, -1),
    (0, 1), (0, 1, 2), (slice(None), 1), (slice(None), slice(0, 2), slice(None, None, 2)),
    ..., (..., 0), (0, ..., 1), None, (slice(None), None, 1), (),
    np.array([1, 0, 1]), np.array([[0, 1], [1, 1]]), (slice(None), np.array([0, 2])),
    (np.array([0, 1]), np.array([2, 0])), (np.array([0, 1]), slice(None), np.array([3, 1])),
    (np.array([[0], [1]]), np.array([0, 2])),
    HOST > 11, np.array([True, False]), (slice(None), np.array([True, False, True])),
    (slice(None), [0, 2]), (slice(None), (2, 0), [0, 1]), ([[0], [1]], ..., range(2)),
    (..., [True, False, True, False]), (0, []),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=lambda i: str(i).replace("\n", ""))
def test_indexing_is_that_of_numpy(x, index):
    np.testing.assert_array_equal(x[index], HOST[index], strict=True)


@pytest.mark.parametrize("index", INDICES, ids=lambda i: str(i).replace("\n", ""))
def test_at_set_is_assignment_to_a_copy(x, index):
    expected = HOST.copy()
    expected[index] = -1
    np.testing.assert_array_equal(x.at[index].set(-1), expected)
    np.testing.assert_array_equal(x, HOST)


def test_traced_indices(x):
    f = phalanx.jit(lambda x, i: (x[i], x[0, i], x[:, i, 1:], x[:, [i, 0]], x[..., (i, i), 0]))
    parts = HOST[1], HOST[0, 1], HOST[:, 1, 1:], HOST[:, [1, 0]], HOST[..., (1, 1), 0]
    for got, want in zip(f(x, 1), parts, strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_is_no_index(x):
    for index in ((0, 0, 0, 0), "a", 1.0, [0, 1], (0, ["a"]), (0, [0.5]), (..., ...)):
        with pytest.raises((IndexError, TypeError), match=r"index|indices|\.\.\."):
            x[index]


def test_reading_outside_takes_the_nearest_element_and_writing_does_nothing(x):
    np.testing.assert_array_equal(jnp.arange(3)[jnp.array([1, 7, -9])], [1, 2, 0])
    np.testing.assert_array_equal(x[5], HOST[1])
    np.testing.assert_array_equal(jnp.arange(3).at[jnp.array([1, 7])].set(9), [0, 9, 2])
    np.testing.assert_array_equal(x[0, [0, 2**40]], HOST[0, [0, HOST.shape[1] - 1]])
    np.testing.assert_array_equal(jnp.zeros((1, 2)).at[0, [1, 2**40]].set(9), [[0, 9]])


# ---- copies and exchange ------------------------------------------------------------------------


def test_pickling_and_copying(x):
    for y in (x, jnp.array(2.5), jnp.ones(3, jnp.bfloat16), jnp.asarray(1.0), jnp.zeros((0, 2))):
        for made in (pickle.loads(pickle.dumps(y)), copy.copy(y), copy.deepcopy(y), y.copy()):
            assert (made.dtype, made.shape, made.weak_type) == (y.dtype, y.shape, y.weak_type)
            np.testing.assert_array_equal(np.asarray(made), np.asarray(y))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: x.copy()])
def test_copies_outlive_what_they_copy(way):
    for lost in (lambda y: y.delete(), phalanx.jit(lambda y: 2 * y, donate_argnums=0)):
        y = jnp.arange(3.0)
        made, _ = way(y), lost(y)
        assert y.is_deleted() and made.tolist() == [0, 1, 2]


def test_dlpack_to_numpy_and_back(x):
    shared = np.from_dlpack(x)
    np.testing.assert_array_equal(shared, HOST)
    assert x.__dlpack_device__()[0] == 1
    back = jnp.from_dlpack(np.arange(4.0, dtype=np.float32))
    np.testing.assert_array_equal(back, [0, 1, 2, 3])
    np.testing.assert_array_equal(jnp.from_dlpack(x), HOST)


def test_shards_of_an_array_on_one_device(x):
    (shard,) = x.addressable_shards
    assert shard.device == phalanx.devices()[0] and shard.replica_id == 0
    assert shard.index == (slice(None),) * 3
    np.testing.assert_array_equal(shard.data, HOST)
    np.testing.assert_array_equal(x.addressable_data(0), HOST)
    assert x.is_fully_replicated and x.is_fully_addressable
    assert x.sharding.device_set == x.devices()


# ---- life ---------------------------------------------------------------------------------------


def test_deleting(x):
    y = x + 1
    x.delete()
    x.delete()
    assert x.is_deleted() and not y.is_deleted()
    assert x.shape == (2, 3, 4)
    assert "deleted" in repr(x) and "deleted" in str(x)
    uses = [
        lambda: np.asarray(x), lambda: x + 1, lambda: x[0], lambda: phalanx.jit(jnp.sin)(x),
        lambda: x.block_until_ready(), lambda: phalanx.device_put(x, phalanx.devices()[-1]),
        lambda: phalanx.pmap(jnp.sin)(x), lambda: x.tolist(), lambda: pickle.dumps(x),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(DeletedArray, match="delete"):
            use()


def test_empty_and_scalar_arrays():
    empty = jnp.zeros((0, 3))
    assert empty.sum() == 0 and empty.tolist() == []
    np.testing.assert_array_equal(empty + 1, np.zeros((0, 3)))
    assert phalanx.jit(lambda x: x.T)(empty).shape == (3, 0)
    assert [*range(math.floor(jnp.float32(2.5)), math.ceil(jnp.float32(3.5)))] == [2, 3]
    with pytest.raises(ConcretizationTypeError, match="as a Python float"):
        phalanx.jit(lambda x: math.floor(x))(2.5)


# ---- protocols ----------------------------------------------------------------------------------


class Boxed:
    """Not an array, but it says which one it stands for."""

    def __jax_array__(self):
        return jnp.arange(3.0) + 1


STANDING_FOR = {
    "array": lambda a: jnp.array(a),
    "asarray": lambda a: jnp.asarray(a),
    "in a list": lambda a: jnp.array([a, jnp.zeros(3)])[0],
    "operand": lambda a: jnp.multiply(a, 1),
    "product": lambda a: jnp.ones(3) * a,
    "reflected": lambda a: a * jnp.ones(3),
    "at": lambda a: jnp.zeros(3).at[:].set(a),
    "in jit": lambda a: phalanx.jit(lambda x: x * a)(jnp.ones(3)),
    "in grad": lambda a: phalanx.grad(lambda x: (x * a).sum())(jnp.ones(3)),
    "in vmap": lambda a: phalanx.vmap(lambda x: x * a)(jnp.ones((1, 3)))[0],
    "in pmap": lambda a: phalanx.pmap(lambda x: x * a)(jnp.ones((1, 3)))[0],
}


@pytest.mark.parametrize("way", STANDING_FOR)
def test_objects_that_stand_for_an_array(way):
    assert STANDING_FOR[way](Boxed()).tolist() == [1.0, 2.0, 3.0]
    assert (jnp.arange(3.0) + 1 == Boxed()).all()
    assert not hasattr(jnp.arange(3.0), "__jax_array__")


@pytest.mark.parametrize("around", [lambda f: f, phalanx.jit, phalanx.vmap, phalanx.grad])
def test_the_functions_of_the_array_api(around):
    def distance(x):
        xp = x.__array_namespace__()
        assert xp is jnp
        return xp.sum(xp.abs(xp.astype(xp.asarray(x), xp.float32) - 1))

    given = jnp.full(2, 3.0) if around is phalanx.vmap else jnp.float32(3)
    expected = 1 if around is phalanx.grad else 2
    assert jnp.all(around(distance)(given) == expected)


def test_bytes_and_memory():
    x = jnp.arange(6, dtype=jnp.int32).reshape(2, 3)
    assert x.tobytes() == np.arange(6, dtype=np.int32).tobytes()
    assert x.tobytes("F") == np.arange(6, dtype=np.int32).reshape(2, 3).tobytes("F")
    assert x.on_device_size_in_bytes() == x.nbytes == 24
    assert x.platform() == phalanx.devices()[0].platform
    assert x.unsafe_buffer_pointer() > 0
    assert x.copy_to_host_async() is None and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.clone().tolist() == x.tolist() and x.clone() is not x
    assert x.to_device(phalanx.devices()[-1]).devices() == {phalanx.devices()[-1]}
    split = phalanx.pmap(lambda x: x)(x)
    shards = split.global_shards
    assert np.concatenate([s.data for s in shards]).tolist() == x.tolist()
    assert [s.device for s in shards] == list(split.sharding.device_list)
    assert split.copy_to_host_async() is None and split.tolist() == x.tolist()
    x.delete()
    with pytest.raises(DeletedArray):
        x.copy_to_host_async()


COPIED = {
    "a compiled function": lambda: phalanx.jit(lambda x: x + 1),
    "a mapped function": lambda: phalanx.pmap(lambda x: x + 1),
    "a sharding": lambda: jnp.ones(2).sharding,
    "a named sharding": lambda: phalanx.NamedSharding(
        phalanx.sharding.Mesh(np.array(phalanx.devices()), ("i",)), phalanx.P("i")
    ),
    "a mesh": lambda: phalanx.sharding.Mesh(np.array(phalanx.devices()), ("i",)),
}


@pytest.mark.parametrize("name", COPIED)
def test_copies_of_what_cannot_change_are_the_same(name):
    x = COPIED[name]()
    for made in (copy.copy(x), copy.deepcopy(x), copy.deepcopy({"x": [x]})["x"][0]):
        assert made is x


def test_what_has_no_array_to_give_is_refused_in_words():
    """Traced values of jax's own have None in place of a method."""

    class Traced:
        __jax_array__ = None

    with pytest.raises(TypeError, match="sin: an array or a number is needed"):
        jnp.sin(Traced())
    with pytest.raises(TypeError, match="Traced"):
        jnp.asarray(Traced())


def test_lists_hold_integers_that_no_dtype_of_integers_does():
    with pytest.raises(OverflowError, match=r"^array: Python int 12676506.* no integer dtype does"):
        jnp.asarray([1, 2**100])
    assert jnp.asarray([1, 2**100], "float32").tolist() == [1, 2.0**100]
    assert jnp.asarray([[2**100, 1.5]]).tolist() == [[2.0**100, 1.5]]
    with pytest.raises(TypeError, match="numbers are needed"):
        jnp.asarray(np.array([1, 2], object))


def test_what_gives_itself_as_an_array_is_none():
    class Endless:
        def __jax_array__(self):
            return self

    for call in (jnp.sin, jnp.asarray, lambda x: jnp.ones(2) + x):
        with pytest.raises(TypeError, match=r"needed, got .*Endless"):
            call(Endless())


@pytest.mark.parametrize("join", [jnp.stack, jnp.concatenate, jnp.vstack, jnp.hstack])
@pytest.mark.parametrize("empty", [np.zeros((0, 3)), jnp.zeros((0, 3)), []], ids=repr)
def test_nothing_is_joined(join, empty):
    with pytest.raises(ValueError, match=r"^\w+: at least one array is needed, got an empty"):
        join(empty)


def test_a_subclass_that_says_otherwise_is_what_its_memory_is():
    class Other(np.ndarray):
        shape = (9, 9)
        dtype = np.dtype("int8")

    x = np.arange(6, dtype="f").reshape(2, 3).view(Other)
    for y in (phalanx.device_put(x), phalanx.jit(lambda x: x)(x), jnp.negative(jnp.negative(x))):
        assert y.shape == (2, 3) and y.dtype == np.float32
        assert y.tolist() == [[0, 1, 2], [3, 4, 5]]
