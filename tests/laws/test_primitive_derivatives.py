"""Every primitive's derivative is that of finite differences, and transposes are transposes."""

import os

import pytest

from phalanx.core.primitive import REGISTRY
from phalanx.laws.primitives import law_linearize, law_transpose

HEAVY = os.environ.get("PHALANX_HYPOTHESIS") == "heavy"
TRANSPOSED = [n for n, p in sorted(REGISTRY.items()) if p.examples and callable(p.transpose)]


def test_linearize(prim, example):
    law_linearize(prim, example, order=2 if HEAVY or example is prim.examples[0] else 1)


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transpose(name):
    prim = REGISTRY[name]
    assert sum(law_transpose(prim, one) for one in prim.examples), "it is linear in nothing"
