"""Devices, and putting arrays on them."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import errors

pytestmark = pytest.mark.spmd

DEVICES = phalanx.devices()
COUNT = len(DEVICES)
X = np.arange(COUNT * 2 * 3, dtype=np.float32).reshape(COUNT * 2, 3)


def test_rows_of_the_only_process_are_all():
    assert phalanx.process_rows(13) == slice(0, 13)
    assert phalanx.process_rows(np.int64(0), 0) == slice(0, 0)
    with pytest.raises(ValueError, match="process_rows: process_index 1 is not one of 1"):
        phalanx.process_rows(13, 1)
    with pytest.raises(ValueError, match="at least 0, not -1"):
        phalanx.process_rows(-1)
    with pytest.raises(TypeError):
        phalanx.process_rows(2.5)


def test_counts_and_places():
    assert phalanx.device_count() == phalanx.local_device_count() == COUNT
    assert phalanx.local_devices() == DEVICES
    assert phalanx.local_devices(process_index=0) == DEVICES
    with pytest.raises(ValueError, match="process_index 7 is not one of"):
        phalanx.local_devices(process_index=7)
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


def of_two_devices():
    return phalanx.device_put(X, DEVICES[0]), phalanx.device_put(X, DEVICES[-1])


APART = {
    "eager": lambda x, y: x + y,
    "jit": lambda x, y: phalanx.jit(jnp.add)(x, y),
    "of a tree": lambda x, y: phalanx.jit(lambda tree: tree["x"] * tree["y"])({"x": x, "y": y}),
    "grad": lambda x, y: phalanx.grad(lambda x, y: (x * y).sum())(x, y),
    "vmap": lambda x, y: phalanx.vmap(jnp.multiply)(x, y),
    "index": lambda x, y: x[y.astype(int)],
    "ahead of time": lambda x, y: phalanx.jit(jnp.add).lower(x, y).compile(),
}


@pytest.mark.skipif(COUNT < 2, reason="needs two devices")
@pytest.mark.parametrize("name", APART)
def test_arrays_placed_on_different_devices_do_not_combine(name):
    x, y = of_two_devices()
    needed = r"placed on different devices .* phalanx\.device_put"
    with pytest.raises(ValueError, match=needed) as caught:
        APART[name](x, y)
    assert isinstance(caught.value, errors.DevicesDiffer)
    for device in (DEVICES[0], DEVICES[-1]):
        assert str(device) in str(caught.value)
    assert APART[name](x, phalanx.device_put(y, DEVICES[0])) is not None


@pytest.mark.skipif(COUNT < 2, reason="needs two devices")
def test_the_refusal_names_the_arguments_and_the_line():
    x, y = of_two_devices()
    with pytest.raises(errors.DevicesDiffer, match=r"test_devices.*weight\['w'\], f32.*row, f32"):
        phalanx.jit(lambda weight, row: weight["w"] + row)({"w": x}, y)


@pytest.mark.skipif(COUNT < 2, reason="needs two devices")
def test_what_was_read_of_a_split_array_is_free():
    split = phalanx.device_put(X, DEVICES)
    rows = [split[i] for i in (0, -1)]
    assert [r.devices() for r in rows] == [{DEVICES[0]}, {DEVICES[-1]}]
    assert not any(r.committed for r in rows)
    np.testing.assert_array_equal(rows[0] + rows[1], X[0] + X[-1])
    np.testing.assert_array_equal(split[-1:][0] * split[0], X[0] * X[-1])
    assert (rows[1] * 2).devices() == {DEVICES[-1]}  # nothing is moved that need not be
    total = phalanx.pmap(lambda x: 2 * x)(X[:1]) + phalanx.pmap(lambda x: x)(X[:COUNT]).sum(0)
    np.testing.assert_allclose(total[0], 2 * X[0] + X[:COUNT].sum(0))


@pytest.mark.skipif(COUNT < 2, reason="needs two devices")
def test_an_array_that_a_function_closes_over_follows_its_arguments():
    x, y = of_two_devices()
    assert phalanx.jit(lambda x: x + y)(x).devices() == {DEVICES[0]}


@pytest.mark.skipif(COUNT < 2, reason="needs two devices")
def test_derivatives_of_put():
    x, y = of_two_devices()
    there = DEVICES[-1]

    def f(x):
        return (phalanx.device_put(x, there) * y).sum()

    value, slope = phalanx.value_and_grad(f)(x)
    assert value.devices() == {there} and slope.devices() == {DEVICES[0]} and slope.committed
    np.testing.assert_array_equal(slope, X)
    free = phalanx.grad(f)(jnp.asarray(X))
    assert free.devices() == {DEVICES[0]} and not free.committed
    out, tangent = phalanx.jvp(f, (x,), (x,))
    assert tangent.devices() == out.devices() == {there}
    np.testing.assert_allclose(tangent, (X * X).sum(), rtol=1e-6)
    np.testing.assert_array_equal(phalanx.hessian(f)(x), np.zeros((*X.shape, *X.shape)))
    assert phalanx.grad(lambda x: phalanx.device_put(x) * 2)(1.0).weak_type


@pytest.mark.skipif(COUNT < 2, reason="needs two devices")
def test_put_within_transformations():
    moved = phalanx.vmap(lambda x: phalanx.device_put(x, DEVICES[-1]) * 2)(X)
    assert moved.devices() == {DEVICES[-1]}
    rows = phalanx.vmap(lambda x: phalanx.device_put(x, DEVICES[:2]), in_axes=1, out_axes=1)(X)
    assert rows.sharding.shard_shape(X.shape) == (len(X) // 2, 3)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(phalanx.jit(lambda x: phalanx.device_put(x, DEVICES[-1]))(X), X)
    inside = phalanx.pmap(lambda x: phalanx.device_put(x, DEVICES[0]))(X)
    np.testing.assert_array_equal(inside, X)


WIDE = [2**31, -(2**31) - 1, np.int64(2**40), np.array([0, 2**40]), np.array([2**63], np.uint64)]


@pytest.mark.parametrize("x", WIDE)
def test_integers_that_do_not_fit_are_not_put(x):
    for device in (None, DEVICES[0]):
        with pytest.raises(OverflowError, match=r"device_put: .* does not fit .*enable_x64"):
            phalanx.device_put(x, device)


def test_integers_that_fit_are_put():
    for x in (2**31 - 1, -(2**31), np.int64(7), np.arange(3), np.zeros(0, np.int64), np.uint64(3)):
        np.testing.assert_array_equal(phalanx.device_put(x), x)
    assert phalanx.device_put(2).weak_type and not phalanx.device_put(True).weak_type
    assert np.isinf(phalanx.device_put(np.float64(1e300)))


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
    "wait",
    [
        phalanx.block_until_ready,
        lambda x: x.block_until_ready(),
        lambda x: phalanx.block_until_ready([0, x]),
    ],
)
@pytest.mark.parametrize("made_by", [jnp.exp, phalanx.pmap(jnp.exp)])
def test_waiting_says_which_array_was_deleted_under_another_name(wait, made_by):
    """A part of it, where it lies on several devices."""
    x = made_by(np.arange(3.0, dtype=np.float32))
    assert wait(x) is not None
    x.addressable_shards[-1].data.delete()
    with pytest.raises(errors.DeletedArray, match=r"f32\[3\] .*deleted"):
        wait(x)


@pytest.mark.parametrize("around", [phalanx.jit, phalanx.vmap, phalanx.pmap])
def test_traced_arrays_stay_as_they_are(around):
    x = np.float32([1.0])

    def cube(x):
        return (phalanx.device_get({"x": x})["x"] * x * x).sum()

    np.testing.assert_array_equal(around(phalanx.grad(cube))(x), [3.0])


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


def test_shards_put_on_devices_lie_as_results_of_pmap_do():
    devices = phalanx.devices()[:2]
    x = phalanx.device_put_sharded([np.zeros(3)] * len(devices), devices)
    result = phalanx.pmap(lambda x: x + 1, devices=devices)(x)
    assert type(x.sharding) is type(result.sharding) is phalanx.sharding.PmapSharding
    assert x.sharding.is_equivalent_to(result.sharding, x.ndim)
    assert {s.device for s in x.addressable_shards} == {*devices}


@pytest.mark.skipif(COUNT < 2, reason="needs two devices")
def test_a_sequence_of_devices_is_a_tree_where_the_values_are_one():
    first, second = DEVICES[0], DEVICES[-1]
    for kind in (list, tuple):
        x, y = phalanx.device_put(kind([1.0, {"a": X}]), kind([first, second]))
        assert x.devices() == {first} and y["a"].devices() == {second}
    rows = phalanx.device_put([X, X], (first, second))  # not of that kind: each is split
    assert all(row.devices() == {first, second} for row in rows)
