"""The main job: digits are learned, a lane for each image, on any number of devices alike."""

import functools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import nn
from phalanx.cli.demo import largest_difference, load_example

digits = load_example("digits")


@functools.cache
def everywhere():
    """Every epoch of a training on all devices."""
    return list(digits.train())


def on_a_batch(params, velocity, rate, images, labels):
    """The step as it is without lanes: of the mean of the loss, by a product of the whole batch."""

    def mean_loss(params):
        scores = nn.log_softmax(digits.logits(params, images))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))

    value, grads = phalanx.value_and_grad(mean_loss)(params)
    velocity = phalanx.tree.map(lambda v, g: digits.MOMENTUM * v + g, velocity, grads)
    return phalanx.tree.map(lambda p, v: p - rate * v, params, velocity), velocity, value


@pytest.mark.spmd
def test_digits_are_learned_in_lanes_as_in_whole_batches(monkeypatch):
    params, loss, accuracy = everywhere()[-1]

    def over_a_batch(_, devices=None):
        return phalanx.jit(on_a_batch)

    monkeypatch.setattr(digits, "over_a_batch", over_a_batch)
    *_, (alone, loss_alone, accuracy_alone) = digits.train()
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
