"""Rows and blocks of arrays over devices, read where they lie."""

import itertools

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
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
    read_there = 0
    for index in indices:
        got = read(array, index)
        if got is NotImplemented:
            continue
        read_there += 1
        np.testing.assert_array_equal(got, X[index])
        assert got.sharding.device_set <= array.sharding.device_set
        assert not got.committed
    assert read_there > len(indices) // 4


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


@pytest.mark.skipif(len(DEVICES) == 1, reason="one device has every row")
@pytest.mark.parametrize(
    "index, equal", [(slice(0, 2), slice(0.0, 2)), (slice(1, 2), slice(1, 2.0)), (3, 3.0)]
)
def test_what_equals_an_index_is_not_read_as_one(index, equal):
    array = laid((2,))
    assert index == equal and read(array, index) is not NotImplemented
    assert read(array, equal) is NotImplemented
    with pytest.raises(TypeError, match="integers"):
        array[equal]


def test_wrong_slices_are_refused_alike_wherever_the_rows_are():
    for array in (jnp.asarray(X), laid(TILES[0]) if TILES else jnp.asarray(X)):
        with pytest.raises(IndexError, match="a slice needs bounds that are known while tracing"):
            ph.jit(lambda i, array=array: array[i:2])(0)
        with pytest.raises(ValueError, match="slice step cannot be zero"):
            array[::0]


@pytest.mark.skipif(len(DEVICES) == 1, reason="one device has every row")
@pytest.mark.parametrize(
    "index",
    [6, -7, True, None, Ellipsis, 1.0, slice(0, 4, 2), slice(3, 3), [0, 1], (0, 0, 0, 0), "0"],
)
def test_what_has_to_be_moved_or_is_wrong_is_left_to_others(index):
    assert read(laid((2,)), index) is NotImplemented
