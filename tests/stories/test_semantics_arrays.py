"""Arrays that go into and come out of mapped functions: where they lie, and what moves."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.xla import XlaBackend

pytestmark = pytest.mark.spmd

COUNT = phalanx.device_count()
DATA = np.arange(COUNT * 3, dtype=np.float32).reshape(COUNT, 3)


@pytest.fixture
def result():
    """An array with one row on each device."""
    return phalanx.pmap(lambda r: r + 1)(DATA)


# ---- shards -------------------------------------------------------------------------------------


def test_shards_keep_their_rank_and_their_index_is_a_slice(result):
    assert result.shape == DATA.shape
    for i, shard in enumerate(result.addressable_shards):
        assert shard.data.shape == (1, 3)
        assert shard.device == phalanx.devices()[i]
        assert shard.data.devices() == {shard.device}
        rows = shard.index[0]
        assert isinstance(rows, slice) and DATA[rows].shape == (1, 3)
        np.testing.assert_array_equal(shard.data, DATA[shard.index] + 1)
        assert shard.replica_id == 0


def test_lanes_on_one_device_are_one_shard():
    one = phalanx.devices()[:1]
    found = phalanx.pmap(lambda r: r * 2, devices=one)(np.ones((3, 2), np.float32))
    (shard,) = found.addressable_shards
    assert shard.data.shape == (3, 2)


def test_a_replicated_result_is_whole_on_every_device():
    found = phalanx.pmap(lambda r: lax.psum(r, "i"), axis_name="i", out_axes=None)(DATA)
    assert found.is_fully_replicated
    assert [s.replica_id for s in found.addressable_shards] == list(range(COUNT))
    for shard in found.addressable_shards:
        np.testing.assert_allclose(shard.data, DATA.sum(0))


def test_the_sharding_of_a_result_says_how_it_is_split(result):
    assert result.sharding.shard_shape(result.shape) == (1, 3)
    assert result.devices() == set(phalanx.devices())
    assert result.is_fully_addressable


# ---- inputs from anywhere -----------------------------------------------------------------------


def test_inputs_lying_anywhere_are_moved(several):
    f = phalanx.pmap(lambda x: x * 2)
    n = len(several)
    x = np.arange(n * 2, dtype=np.float32).reshape(n, 2)
    for placed in (
        phalanx.device_put(x, several[-1]),
        phalanx.device_put(x, several),
        phalanx.device_put(x, several[::-1]),
        phalanx.pmap(lambda r: r, out_axes=1)(x).T,
        phalanx.device_put_replicated(x[0], several) * 0 + x,
    ):
        found = f(placed)
        np.testing.assert_array_equal(found, 2 * x)
        assert [s.device for s in found.addressable_shards] == several


def test_reversed_devices_take_inputs_of_the_usual_order(several):
    n = len(several)
    x = phalanx.pmap(lambda r: r)(np.arange(n))
    found = phalanx.pmap(lambda r: r - 1, devices=several[::-1])(x)
    np.testing.assert_array_equal(found, np.arange(n) - 1)
    assert [s.device for s in found.addressable_shards] == several[::-1]
    back = phalanx.pmap(lambda r: r + 1)(found)
    np.testing.assert_array_equal(back, np.arange(n))
    assert [s.device for s in back.addressable_shards] == several


def test_an_input_that_lies_right_is_not_copied(result, monkeypatch):
    f = phalanx.pmap(lambda x: x + 1)
    f(result)
    moves = []
    original = XlaBackend.move
    monkeypatch.setattr(
        XlaBackend, "move", staticmethod(lambda *a: moves.append(a) or original(*a))
    )
    f(result)
    assert not moves


# ---- indexing -----------------------------------------------------------------------------------


def test_a_row_lives_on_the_device_of_its_lane_and_nothing_moves(result, monkeypatch):
    for name in ("move", "fetch", "put"):
        original = getattr(XlaBackend, name)

        def refuse(*args, original=original, name=name):
            sizes = [getattr(a, "size", 0) for a in args]
            assert max(sizes, default=0) <= 3, f"{name} of a whole array"
            return original(*args)

        monkeypatch.setattr(XlaBackend, name, staticmethod(refuse))
    for i in (*range(COUNT), -1, np.int64(0)):
        row = result[i]
        assert row.devices() == {phalanx.devices()[i]}
        assert row.shape == (3,)
    monkeypatch.undo()
    for i in range(COUNT):
        np.testing.assert_array_equal(result[i], DATA[i] + 1)


def test_iterating_gives_the_rows(result):
    for i, row in enumerate(result):
        np.testing.assert_array_equal(row, DATA[i] + 1)


@pytest.mark.parametrize(
    "index",
    [
        slice(None),
        slice(0, 1),
        slice(None, None, 2),
        (0, 1),
        (slice(None), 1),
        (..., -1),
        None,
        np.array([0, -1]),
        np.array([True] * COUNT),
    ],
    ids=str,
)
def test_other_indices_give_what_numpy_gives(result, index):
    np.testing.assert_array_equal(result[index], (DATA + 1)[index])


def test_indexing_from_several_threads(result):
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda k: np.asarray(result[k % COUNT]), range(400)))
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(row, DATA[k % COUNT] + 1)


def test_an_index_out_of_range_reads_the_nearest_row(result):
    np.testing.assert_array_equal(result[COUNT], DATA[-1] + 1)


def test_the_size_is_a_python_int_beyond_32_bits():
    big = phalanx.eval_shape(
        phalanx.pmap(lambda r: jnp.zeros((2**20, 2**12), jnp.int8)), np.zeros(COUNT)
    )
    assert type(big.size) is int and big.size == COUNT * 2**32


# ---- what one does with results -----------------------------------------------------------------


def test_jit_captures_a_result_as_a_constant(result):
    np.testing.assert_allclose(phalanx.jit(lambda x: x + result)(DATA), 2 * DATA + 1)


def test_results_are_reshaped_and_printed(result):
    np.testing.assert_array_equal(result.reshape(-1), (DATA + 1).reshape(-1))
    assert str(result) == str(DATA + 1)
    assert "dtype=float32" in repr(result) and f"{result[0][0]:.2f}" == "1.00"


def test_deleting_twice_is_allowed(result):
    result.delete()
    result.delete()
    assert result.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(result)


def test_results_are_pickled_and_copied(result):
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)), DATA + 1)
    for made in (copy.copy(result), copy.deepcopy(result), result.copy()):
        np.testing.assert_array_equal(made, DATA + 1)
        assert made.devices() == result.devices()
    twin = copy.deepcopy(result)
    result.delete()
    np.testing.assert_array_equal(twin, DATA + 1)


def test_results_mix_with_arrays_on_one_device(result):
    np.testing.assert_allclose(result + jnp.ones(3), DATA + 2)
    np.testing.assert_allclose(jnp.ones(3) * result, DATA + 1)
    np.testing.assert_allclose(DATA * result, DATA * (DATA + 1))


# ---- keys and float0 ----------------------------------------------------------------------------


def test_random_keys_pass_in_and_out():
    keys = random.split(random.PRNGKey(0), COUNT)
    draws, next_keys = phalanx.pmap(lambda k: (random.normal(k, (2,)), random.split(k)[0]))(keys)
    expected = phalanx.vmap(lambda k: random.normal(k, (2,)))(keys)
    np.testing.assert_array_equal(draws, expected)
    assert next_keys.shape == keys.shape and next_keys.dtype == keys.dtype


def test_typed_random_keys_pass_in_and_out():
    keys = random.split(random.key(0), COUNT)
    draws, next_keys = phalanx.pmap(lambda k: (random.uniform(k, (2,)), random.fold_in(k, 1)))(keys)
    np.testing.assert_array_equal(draws, phalanx.vmap(lambda k: random.uniform(k, (2,)))(keys))
    assert next_keys.shape == (COUNT,) and next_keys.dtype == keys.dtype


def test_gradients_by_integers_are_float0_in_and_out():
    counts = np.arange(COUNT)
    zeros = phalanx.grad(lambda n: phalanx.pmap(lambda k: k * 1.5)(n).sum(), allow_int=True)(counts)
    assert zeros.dtype == phalanx.float0 and zeros.shape == (COUNT,)
    _, t = phalanx.jvp(
        phalanx.pmap(lambda r, k: (r * k, k)), (DATA, counts), (np.ones_like(DATA), zeros)
    )
    np.testing.assert_allclose(t[0], np.broadcast_to(counts[:, None], DATA.shape))
    assert t[1].dtype == phalanx.float0
