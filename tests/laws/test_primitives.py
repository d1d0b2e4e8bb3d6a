"""Every primitive computes what its type rule says, eager or compiled."""

import pytest

from phalanx.core.primitive import REGISTRY
from phalanx.laws.primitives import law_jit, law_pmap, law_type, law_vary

NAMED = [n for n, p in sorted(REGISTRY.items()) if p.axes is not None and p.examples]


def test_type(prim, example):
    law_type(prim, example)


def test_jit(prim, example):
    law_jit(prim, example)


def test_vary(prim, example):
    law_vary(prim, example)


@pytest.mark.spmd
@pytest.mark.parametrize("name", NAMED)
def test_pmap(name):
    for one in REGISTRY[name].examples:
        law_pmap(REGISTRY[name], one)
