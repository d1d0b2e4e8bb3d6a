"""A primitive may be lowered in another way on some platforms."""

from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
from phalanx import ops
from phalanx.core.primitive import REGISTRY
from phalanx.spmd.plan import Plan
from phalanx.xla.lower import lower

KEYS = np.array([3.0, 1.0, 2.0], np.float32)
WORDS = np.arange(4, dtype=np.uint32)


def text_on(platform, f, *args):
    """What ``f`` is lowered to for a device of ``platform``."""
    plan = Plan((SimpleNamespace(platform=platform),))
    return lower(phalanx.make_program(f)(*args), plan).as_text()


def sorted_pair(x, y):
    return ops.sort(x, y, dim=0, num_keys=1, stable=True)


def bits(x):
    return ops.threefry2x32(x, x, x, x, once=True)


@pytest.mark.parametrize("platform, packed", [("cpu", True), ("gpu", True), ("tpu", False)])
def test_keys_are_packed_where_there_are_64_bits(platform, packed):
    assert ("tensor<3xi64>" in text_on(platform, sorted_pair, KEYS, KEYS)) == packed


@pytest.mark.parametrize("platform, looped", [("cpu", True), ("gpu", False), ("tpu", False)])
def test_the_rounds_of_random_bits_are_a_loop_where_they_would_be_repeated(platform, looped):
    assert ("stablehlo.while" in text_on(platform, bits, WORDS)) == looped


def test_platforms_have_names_that_devices_have():
    known = {"cpu", "gpu", "tpu"}
    assert all(set(prim.lower_on) <= known for prim in REGISTRY.values())
