"""The GPUs of a machine, dealt out to its processes."""

import pytest

from phalanx.base.errors import ConfigError
from phalanx.processes.dealing import OfHost


@pytest.mark.parametrize(("gpus", "count"), [(8, 8), (8, 4), (8, 2), (6, 3), (4, 1)])
@pytest.mark.parametrize("each", [None, 1])
def test_every_process_has_its_own(gpus, count, each):
    dealt = [OfHost(i, count, each).local_device_ids(gpus) for i in range(count)]
    if count == 1 and each is None:
        assert dealt == [None]  # all of them
        return
    assert {len(d) for d in dealt} == {each or gpus // count}
    held = [n for d in dealt for n in d]
    assert len({*held}) == len(held)
    assert {*held} <= {*range(gpus)}


@pytest.mark.parametrize(
    ("gpus", "process"),
    [(8, OfHost(0, 3)), (2, OfHost(0, 4)), (8, OfHost(0, 4, each=3)), (1, OfHost(0, 1, each=2))],
)
def test_what_cannot_be_dealt_out_is_told(gpus, process):
    with pytest.raises(ConfigError, match=rf"shows {gpus} GPUs.*--devices-per-process N or"):
        process.local_device_ids(gpus)


def test_what_was_given_to_one_process_is_all_its_own():
    assert OfHost(3, 8).local_device_ids(1, are_assigned=True) is None
