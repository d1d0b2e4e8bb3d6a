"""Rows and blocks of arrays over devices, read where they lie."""

import itertools

import numpy as np
import pytest

import phalanx as ph
from phalanx.run.reading import read
from phalanx.spmd.sharding import Sharding

pytestmark = pytest.mark.spmd

DEVICES = ph.devices()
SHAPE = (6, 5, 2)
X = np.arange(60, dtype=np.float32).reshape(SHAPE)
TILES = [
    tiles
    for tiles in ((2,), (1, 3), (3, 2), (2, 1, 2), (4,), (5, 1))
    if np.prod(tiles) <= len(DEVICES)
]
ENTRIES = [0, 3, -1, np.int64(2), slice(None), slice(0, 3), slice(2, 4), slice(1, None)]


def laid(tiles):
    return ph.device_put(X, Sharding(DEVICES[: int(np.prod(tiles))], tiles))


@pytest.mark.parametrize("tiles", TILES)
def test_what_is_read_is_what_is_there_and_where_it_was(tiles):
    array = laid(tiles)
    indices = [*itertools.product(ENTRIES, repeat=2), *((e,) for e in ENTRIES), (1, 2, 1)]
    taken = 0
    for index in indices:
        got = read(array, index)
        if got is NotImplemented:
            continue
        taken += 1
        np.testing.assert_array_equal(got, X[index])
        assert got.sharding.device_set <= array.sharding.device_set
        assert len(got.sharding.device_set) < len(DEVICES) or got.sharding.committed is False
    assert taken > len(indices) // 4


@pytest.mark.parametrize("tiles", TILES)
def test_a_row_is_read_from_the_devices_that_have_it(tiles):
    array = laid(tiles)
    for row in range(SHAPE[0]):
        got = read(array, row)
        if tiles[0] == 1:  # all devices have a part of it
            assert got is NotImplemented
            continue
        having = {s.device for s in array.addressable_shards if row in range(6)[s.index[0]]}
        assert got.sharding.device_set == having


@pytest.mark.parametrize(
    "index",
    [6, -7, True, None, Ellipsis, 1.0, slice(0, 4, 2), slice(3, 3), [0, 1], (0, 0, 0, 0), "0"],
)
def test_what_has_to_be_moved_or_is_wrong_is_left_to_others(index):
    if len(DEVICES) > 1:
        assert read(laid((2,)), index) is NotImplemented
