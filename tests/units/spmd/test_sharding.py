"""Shardings, with integers as devices."""

import numpy as np
import pytest

from phalanx.base.errors import DeviceError
from phalanx.spmd.sharding import Sharding, SingleDeviceSharding


def test_equal_shardings_are_one_object():
    assert Sharding(range(8), (8,)) is Sharding(tuple(range(8)), [8, 1, 1])
    assert Sharding(range(8), (1, 1)) is Sharding(range(8))
    assert Sharding(range(4), (2,), (0, 1, 2, 3)) is Sharding(range(4), (2,))
    assert Sharding(range(4), (2,), (1, 0, 3, 2)) is Sharding(range(4), (2,))
    assert Sharding(range(4), (), (3, 1, 0, 2)) is Sharding(range(4))
    assert Sharding(range(4), (4,)) is not Sharding((1, 0, 2, 3), (4,))
    assert Sharding(range(4), (2,), (2, 3, 0, 1)) != Sharding(range(4), (2,))


def test_single_device_sharding_and_commitment():
    here = SingleDeviceSharding(0)
    assert here is Sharding([0]) and isinstance(here, SingleDeviceSharding)
    free = SingleDeviceSharding(0, committed=False)
    assert free != here and free.commit() is here and here.commit() is here
    assert not free.committed and here.committed
    rows = Sharding(range(4), (2,), (0, 2, 1, 3))
    assert rows.freed().plain is rows and not rows.freed().committed and rows.commit() is rows
    assert here.is_fully_replicated and here.num_devices == 1
    assert repr(here) == "SingleDeviceSharding(device=0)"


def test_queries():
    s = Sharding(range(8), (2, 2))
    assert (s.copies, s.num_devices, s.device_set) == (2, 8, set(range(8)))
    assert not s.is_fully_replicated and Sharding(range(8)).is_fully_replicated
    assert s.is_fully_addressable and s.addressable_devices == set(range(8))
    assert s.shard_shape((4, 6, 3)) == (2, 3, 3)
    assert [s.tile_at(i) for i in range(8)] == [(0, 0)] * 2 + [(0, 1)] * 2 + [(1, 0)] * 2 + [
        (1, 1)
    ] * 2
    assert s.devices_indices_map((4, 6, 3))[5] == (slice(2, 4), slice(0, 3), slice(None))
    assert Sharding([7]).devices_indices_map(()) == {7: ()}


@pytest.mark.parametrize("tiles, order", [((2, 3), None), ((3,), None), ((6,), (5, 3, 1, 0, 2, 4))])
def test_shards_tile_the_array(tiles, order):
    s = Sharding("abcdef", tiles, order)
    x = np.arange(6 * 6).reshape(6, 6)
    seen = np.zeros_like(x)
    for device, index in s.devices_indices_map(x.shape).items():
        assert x[index].shape == s.shard_shape(x.shape)
        assert device in s.device_set
        seen[index] += 1
    assert (seen == s.copies).all()


def test_parts_that_do_not_divide_are_padded():
    s = Sharding(range(4), (4,))
    assert s.shard_shape((13, 2)) == (4, 2)
    assert s.padded_shape((13, 2)) == (16, 2)
    assert [i[0] for i in s.indices((13, 2))] == [
        slice(0, 4), slice(4, 8), slice(8, 12), slice(12, 13)
    ]  # fmt: skip
    assert [s.real_shape((9, 2), p) for p in range(4)] == [(3, 2), (3, 2), (3, 2), (0, 2)]


def test_wrong_shapes_are_refused():
    s = Sharding(range(4), (1, 4))
    with pytest.raises(ValueError, match="splits 2 dimensions"):
        s.shard_shape((4,))
    with pytest.raises(ValueError, match="does not divide 4 devices"):
        Sharding(range(4), (3,))
    with pytest.raises(ValueError, match="distinct"):
        Sharding((0, 0))
    with pytest.raises(ValueError, match="permutation"):
        Sharding(range(2), (2,), (0, 0))


def test_equivalence_ignores_the_order_of_devices():
    forward, backward = Sharding((0, 1), (2,)), Sharding((1, 0), (2,), (1, 0))
    assert forward != backward and forward.is_equivalent_to(backward, 1)
    assert not forward.is_equivalent_to(Sharding((1, 0), (2,)), 1)
    assert not forward.is_equivalent_to(Sharding((0, 2), (2,)), 1)


class Client:
    """A runtime of process 1."""

    def process_index(self):
        return 1


class Device:
    """Device ``id`` of a process, as a process sees it that has others beside it."""

    client = Client()

    def __init__(self, id, process_index):
        self.id, self.process_index = id, process_index

    def __repr__(self):
        return f"d{self.id}"


def test_positions_count_all_devices_and_local_numbers_the_addressable_ones():
    devices = [Device(i, owner) for i, owner in enumerate((0, 1, 0, 1, 1, 0))]
    s = Sharding(devices, (3,))
    assert not s.is_fully_addressable and s.num_devices == 6
    assert s.local_positions == (1, 3, 4)
    assert s.local_devices == tuple(devices[i] for i in (1, 3, 4))
    assert s.addressable_devices == set(s.local_devices)
    assert [s.local_of(p) for p in s.local_positions] == [0, 1, 2]
    # what a device holds is counted by its position, whoever can reach it
    assert s.replica_ids == (0, 1) * 3
    assert s.real_shape((5,), 5) == (1,) and s.real_shape((5,), 1) == (2,)
    assert s.addressable_devices_indices_map((5,)) == {
        devices[1]: (slice(0, 2),), devices[3]: (slice(2, 4),), devices[4]: (slice(4, 5),)
    }  # fmt: skip
    assert len(s.devices_indices_map((5,))) == 6
    with pytest.raises(DeviceError, match=r"d2 at position 2 .* process 0, and this is process 1"):
        s.local_of(2)


def test_replicas_are_counted_in_the_order_of_devices():
    assert Sharding(range(4)).replica_ids == (0, 1, 2, 3)
    assert Sharding(range(4), (2,), (0, 2, 1, 3)).replica_ids == (0, 0, 1, 1)
