"""Transfers that are allowed, logged or refused, explicit and implicit ones."""

import logging

import numpy as np
import pytest

import phalanx as ph
from phalanx.base.errors import DisallowedTransfer
from phalanx.run.guards import Explicitly, watch

WHICH = ["host_to_device", "device_to_host", "device_to_device"]
# the level; what happens to an implicit transfer, and to an explicit one
LEVELS = {
    "allow": (None, None),
    "log": ("log", None),
    "disallow": ("refuse", None),
    "log_explicit": ("log", "log"),
    "disallow_explicit": ("refuse", "refuse"),
}


def what_happens(which, caplog):
    caplog.clear()
    try:
        with caplog.at_level(logging.WARNING, "phalanx"):
            watch(which, "f32[3]")
    except DisallowedTransfer as e:
        assert f"Disallowed {which.replace('_', '-')} transfer of f32[3]" in str(e)
        assert "test_guards.py:" in str(e)
        return "refuse"
    return "log" if "f32[3]" in caplog.text else None


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("which", WHICH)
def test_levels(which, level, caplog):
    implicit, explicit = LEVELS[level]
    with getattr(ph, f"transfer_guard_{which}")(level):
        assert what_happens(which, caplog) == implicit
        with Explicitly():
            assert what_happens(which, caplog) == explicit
            with Explicitly():
                pass
            assert what_happens(which, caplog) == explicit
        assert what_happens(which, caplog) == implicit
        for other in set(WHICH) - {which}:
            assert what_happens(other, caplog) is None


def test_a_block_that_fails_ends(caplog):
    with ph.transfer_guard("disallow"):
        with pytest.raises(KeyError), Explicitly():
            raise KeyError
        assert what_happens("host_to_device", caplog) == "refuse"


def test_numbers_are_transferred_each_time():
    x = ph.numpy.ones(3)
    assert (x * 2.625).sum() == 7.875  # since then that number is on the device
    with ph.transfer_guard("disallow"):
        for _ in range(2):
            with pytest.raises(DisallowedTransfer, match="host-to-device transfer of f32"):
                x * 2.625


def test_constants_are_parts_of_programs():
    rows = np.linspace(0, 1, 5000, dtype=np.float32)
    x = ph.device_put(rows)

    def total(x):
        part = ph.lax.scan(lambda c, r: (c + r * 1.5, None), 0.0, rows[:3])[0]
        return x @ rows + ph.numpy.asarray(rows[:2]).sum() + part

    with ph.transfer_guard("disallow_explicit"):
        result = ph.jit(total)(x)
    np.testing.assert_allclose(result, rows @ rows + rows[1] + 1.5 * rows[:3].sum(), rtol=1e-5)
