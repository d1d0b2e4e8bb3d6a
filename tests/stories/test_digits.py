"""The main job: digits are learned, by any number of lanes on any number of devices alike."""

import functools

import numpy as np
import pytest

import phalanx
from phalanx.cli.demo import largest_difference, load_example

digits = load_example("digits")


@functools.cache
def everywhere():
    """Every epoch of a training in eight lanes on all devices."""
    return list(digits.train())


@pytest.mark.spmd
def test_digits_are_learned_in_all_lanes_as_in_one():
    params, loss, accuracy = everywhere()[-1]
    *_, (alone, loss_alone, accuracy_alone) = digits.train(1, phalanx.devices()[:1])
    assert accuracy >= 0.97
    assert accuracy == pytest.approx(accuracy_alone, abs=0.005)
    assert loss == pytest.approx(loss_alone, rel=1e-2)
    assert largest_difference(params, alone) < 1e-3
    assert np.isfinite(loss)


@pytest.mark.spmd
@pytest.mark.parametrize("count", [c for c in (1, 3) if c < phalanx.device_count()])
def test_lanes_share_devices(count):
    params, loss, _ = next(digits.train(devices=phalanx.devices()[:count]))
    expected, loss_everywhere, _ = everywhere()[0]
    assert loss == pytest.approx(loss_everywhere, rel=1e-5)
    assert largest_difference(params, expected) < 1e-5
