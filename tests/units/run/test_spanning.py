"""Which lanes of an axis each process has, and which devices run them."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from phalanx.run.spanning import LaneShard


def devices_of(counts):
    """So many devices in each process."""
    return [
        [SimpleNamespace(process_index=p, id=10 * p + i) for i in range(n)]
        for p, n in enumerate(counts)
    ]


PROCESSES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=4)


@given(PROCESSES)
def test_every_lane_is_on_one_device_of_its_process(processes):
    rows, counts = zip(*processes, strict=True)
    devices = devices_of(counts)
    shards = [LaneShard.of("i", rows, devices, me) for me in range(len(rows))]
    for me, shard in enumerate(shards):
        assert (shard.devices, shard.lane_blocks) == (shards[0].devices, shards[0].lane_blocks)
        assert shard.rows == rows[me]
        assert {d.process_index for d in shard.local_devices} == {me}
        assert shard.lanes_in_words == f"{', '.join(map(str, rows))} rows"
        padding = shard.placement.padding
        assert padding == len(shard.local_devices) * shard.lane_blocks.length - shard.rows
        assert 0 <= padding < shard.lane_blocks.length
        assert shard.part in (shard.rows, shard.rows + padding)
        if shard.fits:
            assert shard.part == shard.rows
    every = [i for shard in shards for i in shard.local]
    assert every == [*range(len(shards[0].devices))]
    assert sum(shards[0].lane_blocks.counts) == sum(rows)
    # a device more in some process, or a row less a device, would not do
    length = shards[0].lane_blocks.length
    assert max(-(-n // len(d)) for n, d in zip(rows, devices, strict=True)) == length


@given(PROCESSES)
def test_processes_alike_have_shares_alike(processes):
    (rows, count), *_ = processes
    shards = [LaneShard.of("i", [rows] * 3, devices_of([count] * 3), me) for me in range(3)]
    assert len({(s.rows, len(s.local), s.fits, s.part) for s in shards}) == 1
