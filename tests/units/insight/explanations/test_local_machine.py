"""The devices of this process, measured."""

import numpy as np

import phalanx as ph
from phalanx.insight.explanations.local_machine import measured


def test_devices_are_measured():
    chips = measured(tuple(ph.local_devices()))
    assert chips.chips == ph.local_device_count()
    latency, transfer = chips.exchange("all-reduce", 1 << 20, chips.chips)
    several = chips.chips > 1
    assert (latency > 0) == several and (transfer > 0) == several
    assert chips.roofline(1e9, 0, np.dtype("f4")) > chips.roofline(1e6, 0, np.dtype("f4")) > 0
