"""Maps of memory: programs that nobody uses any more do not take all of them."""

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.xla import mmap_limit


@pytest.mark.skipif(not mmap_limit.maps_in_use(), reason="the system does not tell")
def test_programs_are_forgotten_before_maps_run_out(monkeypatch):
    traced = []

    @phalanx.jit
    def used(x):
        traced.append(x)
        return 2 * x

    used(1.0)
    most = mmap_limit.maps_in_use() + 60
    monkeypatch.setattr(mmap_limit, "_OFTEN", 4)
    monkeypatch.setattr(mmap_limit, "_most", lambda: 2 * most)
    for n in range(80):  # of three maps or more
        used(1.0)
        jnp.ones(n + 1) * 2
        assert mmap_limit.maps_in_use() < most + 100
    assert len(traced) == 1
