"""Devices, and putting arrays on them."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

pytestmark = pytest.mark.spmd

DEVICES = phalanx.devices()
COUNT = len(DEVICES)
X = np.arange(COUNT * 2 * 3, dtype=np.float32).reshape(COUNT * 2, 3)


def test_counts_and_places():
    assert phalanx.device_count() == phalanx.local_device_count() == COUNT
    assert phalanx.local_devices() == DEVICES
    assert phalanx.local_devices(process_index=0) == DEVICES
    assert phalanx.process_index() == 0 and phalanx.process_count() == 1
    assert phalanx.default_backend() == DEVICES[0].platform
    assert phalanx.devices("cpu")[0].platform == "cpu"


def test_an_array_that_nobody_placed_lies_on_the_first_device():
    assert jnp.ones(3).devices() == {DEVICES[0]}
    assert not jnp.ones(3).committed


def test_arrays_that_nobody_placed_follow_the_others():
    x = phalanx.device_put(X, DEVICES[-1])
    for y in (jnp.ones(3) + x, x + jnp.ones(3) * 2, phalanx.jit(jnp.add)(jnp.zeros(3), x), 2 * x):
        assert y.devices() == {DEVICES[-1]} and y.committed


def test_put_on_one_device():
    for device in (DEVICES[0], DEVICES[-1]):
        x = phalanx.device_put(X, device)
        assert x.devices() == {device} and x.committed
        assert x.device == device
        assert (x + 1).devices() == {device}
        np.testing.assert_array_equal(x, X)
    assert phalanx.device_put(x, DEVICES[0]).devices() == {DEVICES[0]}


def test_put_over_a_sequence_of_devices_splits_the_leading_axis():
    for devices in (DEVICES, tuple(DEVICES[::-1]), DEVICES[:1]):
        x = phalanx.device_put({"x": X}, devices)["x"]
        rows = len(X) // len(devices)
        assert [s.device for s in x.addressable_shards] == list(devices)
        for i, shard in enumerate(x.addressable_shards):
            np.testing.assert_array_equal(shard.data, X[i * rows : (i + 1) * rows])


def test_put_by_a_sharding():
    split = phalanx.device_put(X, DEVICES).sharding
    x = phalanx.device_put(X + 1, split)
    assert x.sharding == split
    np.testing.assert_array_equal(x, X + 1)
    y = phalanx.device_put(jnp.asarray(X), split)
    assert y.sharding == split


def test_a_tree_of_targets_is_a_prefix():
    found = phalanx.device_put({"a": X, "b": (X, 1.0)}, {"a": DEVICES[-1], "b": DEVICES[0]})
    assert found["a"].devices() == {DEVICES[-1]}
    assert found["b"][1].devices() == {DEVICES[0]}


def test_put_without_a_target_and_of_numbers():
    assert phalanx.device_put(1).dtype == np.int32
    assert phalanx.device_put(np.float64(2)).dtype == np.float32
    x = jnp.ones(2)
    assert phalanx.device_put(x) is x


def test_put_copies_numpy_arrays():
    host = X.copy()
    placed = phalanx.device_put(host, DEVICES)
    host[:] = -1
    np.testing.assert_array_equal(placed, X)


def test_put_inside_jit_is_the_identity():
    found = phalanx.jit(lambda x: phalanx.device_put(x, DEVICES[0]) + 1)(X)
    np.testing.assert_array_equal(found, X + 1)


def test_put_sharded_and_replicated():
    parts = [{"x": np.full(3, i, np.float32)} for i in range(COUNT)]
    stacked = phalanx.device_put_sharded(parts, DEVICES)["x"]
    assert stacked.shape == (COUNT, 3)
    for i, shard in enumerate(stacked.addressable_shards):
        assert shard.device == DEVICES[i]
        np.testing.assert_array_equal(shard.data, [[i] * 3])
    copies = phalanx.device_put_replicated({"x": X}, DEVICES)["x"]
    assert copies.shape == (COUNT, *X.shape)
    assert copies.devices() == set(DEVICES)
    np.testing.assert_array_equal(copies, [X] * COUNT)


def test_sharded_parts_of_arrays_on_devices():
    parts = [phalanx.device_put(np.full(2, i), d) for i, d in enumerate(DEVICES)]
    np.testing.assert_array_equal(
        phalanx.device_put_sharded(parts, DEVICES), [[i, i] for i in range(COUNT)]
    )


def test_get_and_block():
    tree = {"a": jnp.arange(3), "b": [1.5, np.ones(2)]}
    host = phalanx.device_get(tree)
    assert isinstance(host["a"], np.ndarray) and host["b"][0] == 1.5
    assert phalanx.block_until_ready(tree) is tree
    x = jnp.ones(3) * 2
    assert x.block_until_ready() is x and x.is_ready()


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda: phalanx.device_put(X, [])),
        (ValueError, lambda: phalanx.device_put(np.ones(()), DEVICES * 2)),
        (TypeError, lambda: phalanx.device_put(X, "cpu")),
        (TypeError, lambda: phalanx.device_put("x", DEVICES[0])),
        (ValueError, lambda: phalanx.device_put_sharded([X], DEVICES * 2)),
        (ValueError, lambda: phalanx.device_put_sharded([], [])),
        (ValueError, lambda: phalanx.device_put_replicated(X, [])),
        (RuntimeError, lambda: phalanx.devices("abacus")),
    ],
)
def test_mistakes(error, call):
    with pytest.raises(error, match="device"):
        call()


def test_shards_of_different_shapes_do_not_stack():
    with pytest.raises(ValueError, match="one type"):
        phalanx.device_put_sharded([np.ones(2), np.ones(3)], (DEVICES * 2)[:2])


def test_the_number_of_cpu_devices_is_fixed_once_they_have_started():
    if DEVICES[0].platform != "cpu":
        pytest.skip("the CPU has not started")
    with pytest.raises(ValueError, match="can no longer change"):
        phalanx.config.update("num_cpu_devices", COUNT + 1)
    phalanx.config.update("num_cpu_devices", COUNT)
