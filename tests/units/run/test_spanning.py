"""Which lanes of an axis each process has, and which devices run them."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from phalanx.run.spanning import Share


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
    shares = [Share.of("i", rows, devices, me) for me in range(len(rows))]
    for me, share in enumerate(shares):
        assert (share.devices, share.lane_blocks) == (shares[0].devices, shares[0].lane_blocks)
        assert share.rows == rows[me]
        assert {d.process_index for d in share.local_devices} == {me}
        assert share.lanes_in_words == f"{', '.join(map(str, rows))} rows"
        padding = share.placement.padding
        assert padding == len(share.local_devices) * share.lane_blocks.length - share.rows
        assert 0 <= padding < share.lane_blocks.length
        assert share.part in (share.rows, share.rows + padding)
        if share.fits:
            assert share.part == share.rows
    every = [i for share in shares for i in share.local]
    assert every == [*range(len(shares[0].devices))]
    assert sum(shares[0].lane_blocks.counts) == sum(rows)
    # a device more in some process, or a row less a device, would not do
    length = shares[0].lane_blocks.length
    assert max(-(-n // len(d)) for n, d in zip(rows, devices, strict=True)) == length


@given(PROCESSES)
def test_processes_alike_have_shares_alike(processes):
    (rows, count), *_ = processes
    shares = [Share.of("i", [rows] * 3, devices_of([count] * 3), me) for me in range(3)]
    assert len({(s.rows, len(s.local), s.fits, s.part) for s in shares}) == 1
