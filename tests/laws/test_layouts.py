"""Arrays laid out over any mesh by any spec: the same elements, each where the spec says."""

import functools
import math

import ml_dtypes
import numpy as np
import pytest

import phalanx
from phalanx import NamedSharding, P
from phalanx.sharding import Mesh, PmapSharding

pytestmark = pytest.mark.spmd
DEVICES = np.array(phalanx.devices())
GRIDS = [(8,), (2, 4), (4, 2), (2, 2, 2), (1, 3), (3,), (1,), (5, 1)]
SIZES = [0, 1, 2, 5, 7, 13]
DTYPES = [np.float32, bool, ml_dtypes.bfloat16, np.int8, np.complex64]
same = np.testing.assert_array_equal


def drawn_sharding(rng, ndim, kind):
    """A mesh of any of the devices in any order, and a spec of any of its axes in any order."""
    fitting = [grid for grid in GRIDS if math.prod(grid) <= len(DEVICES)]
    grid = fitting[rng.integers(len(fitting))]
    chosen = rng.permutation(len(DEVICES))[: math.prod(grid)]
    mesh = Mesh(DEVICES[chosen].reshape(grid), tuple("abc"[: len(grid)]))
    entries = [[] for _ in range(ndim)]
    for name in rng.permutation(mesh.axis_names):
        if ndim and rng.random() < 0.7:
            entries[rng.integers(ndim)].append(str(name))
    return kind(mesh, P(*map(tuple, entries)))


def parts(sharding, shape):
    """Per device the slices that the spec means: blocks numbered along its axes, rounded up."""
    mesh = sharding.mesh
    for place in np.ndindex(*mesh.axis_sizes):
        at = dict(zip(mesh.axis_names, place, strict=True))
        index = []
        for dim, size in enumerate(shape):
            names = [*sharding.spec.layout, *[()] * len(shape)][dim]
            number = functools.reduce(lambda n, a: n * mesh.shape[a] + at[a], names, 0)
            length = -(-size // math.prod(mesh.shape[a] for a in names))
            index.append(slice(number * length, (number + 1) * length))
        yield mesh.devices[place], tuple(index)


def check(x, values, sharding):
    assert x.sharding is sharding
    same(x, values)
    held = {shard.device: shard for shard in x.addressable_shards}
    for device, index in parts(sharding, values.shape):
        same(held[device].data, values[index])
        same(values[held[device].index], values[index])


@pytest.mark.parametrize("seed", range(6))
def test_any_layout_from_any_other(seed):
    rng = np.random.default_rng(seed)
    for dtype in DTYPES:
        shape = tuple(rng.choice(SIZES, rng.integers(4)))
        first, second = (drawn_sharding(rng, len(shape), PmapSharding) for _ in range(2))
        values = rng.integers(0, 100, shape).astype(dtype)
        x = phalanx.device_put(values, first)
        check(x, values, first)
        y = phalanx.device_put(x, second)
        check(y, values, second)
        check(phalanx.device_put(y, first, donate=True), values, first)
        there = phalanx.make_array_from_callback(shape, second, lambda i, v=values: v[i])
        check(there, values, second)
        data = [shard.data for shard in x.addressable_shards]
        check(phalanx.make_array_from_single_device_arrays(shape, first, data), values, first)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_is_what_numpy_reads(seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        shape = tuple(rng.choice([2, 8, 13], rng.integers(1, 3)))
        values = rng.integers(0, 100, shape).astype(np.float32)
        x = phalanx.device_put(values, drawn_sharding(rng, len(shape), PmapSharding))
        index = []
        for size in shape[: rng.integers(1, len(shape) + 1)]:
            block = -(-size // rng.choice([1, 2, 4, 8]))
            start, stop = sorted(rng.integers(0, -(-size // block) + 1, 2) * block)
            row = int(rng.integers(-size, size))
            index.append(row if rng.random() < 0.4 else slice(start, stop))
        got, wanted = x[tuple(index)], values[tuple(index)]
        same(got, wanted)
        for shard in got.addressable_shards:
            same(shard.data, wanted[shard.index])


def test_what_is_read_follows_what_it_is_combined_with():
    rows = NamedSharding(Mesh(DEVICES, "a"), P("a"))
    values = np.arange(4.0 * len(DEVICES), dtype=np.float32).reshape(2 * len(DEVICES), 2)
    x, half = phalanx.device_put(values, rows), len(DEVICES) // 2 * 2 or 1
    same(x[0] + x[-1], values[0] + values[-1])
    same(x[:half] + x[-half:], values[:half] + values[-half:])
    same(sum(x), values.sum(0))
    same(x[:half] + phalanx.device_put(values[:half], DEVICES[-1]), 2 * values[:half])


@pytest.mark.filterwarnings("ignore:.*donated buffers")  # where results lie otherwise
def test_keys_and_donation_leave_what_shares_memory_as_it_is():
    rng = np.random.default_rng(0)
    keys = phalanx.random.split(phalanx.random.key(0), len(DEVICES) * 8)
    words = np.asarray(phalanx.random.key_data(keys))
    double = phalanx.jit(lambda x: x * 2, donate_argnums=0)
    values = rng.random((8 * len(DEVICES), 3), np.float32)
    for _ in range(6):
        first, second = (drawn_sharding(rng, 1, PmapSharding) for _ in range(2))
        moved = phalanx.device_put(phalanx.device_put(keys, first), second)
        same(phalanx.random.key_data(moved), words)
        x = phalanx.device_put(values, first)
        copies = [phalanx.device_put(x, s, may_alias=False) for s in (first, second)]
        same(double(x), 2 * values)
        for y in copies:
            same(y, values)


def test_even_only_what_divides():
    mesh = Mesh(DEVICES, "a")
    sharding, lanes = NamedSharding(mesh, P("a")), PmapSharding(mesh, P("a"))
    odd = np.arange(2 * len(DEVICES) + 1)
    uneven = phalanx.pmap(lambda x: x + 1, axis_name="i")(odd)
    same(phalanx.device_put(uneven, lanes), odd + 1)
    same(phalanx.jit(lambda x: x * 2)(uneven), 2 * (odd + 1))
    same(phalanx.device_put(odd, uneven.sharding), odd)
    if len(DEVICES) > 1:
        for refuse in (
            lambda: phalanx.device_put(odd, sharding),
            lambda: phalanx.device_put(uneven, sharding),
            lambda: phalanx.numpy.zeros(odd.shape, device=sharding),
            lambda: phalanx.make_array_from_callback(odd.shape, sharding, lambda i: odd[i]),
        ):
            with pytest.raises(ValueError, match="does not divide dimension 0"):
                refuse()
