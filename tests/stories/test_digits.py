"""The main job: digits are learned, by any number of devices alike."""

import numpy as np
import pytest

import phalanx
from phalanx.cli.demo import largest_difference, load_example


@pytest.mark.spmd
def test_digits_are_learned_on_all_devices_as_on_one():
    job = load_example("digits")
    devices = phalanx.devices()
    *_, (params, loss, accuracy) = job.train(devices)
    *_, (alone, loss_alone, accuracy_alone) = job.train(devices[:1])
    assert accuracy >= 0.97
    assert accuracy == pytest.approx(accuracy_alone, abs=0.005)
    assert loss == pytest.approx(loss_alone, rel=1e-2)
    assert largest_difference(params, alone) < 1e-3
    assert np.isfinite(loss)
