"""What the stories share: devices, and counting what is compiled."""

import pytest

import phalanx
from phalanx.xla import XlaBackend


@pytest.fixture(params=[pytest.param("pmap", marks=pytest.mark.spmd), "vmap"])
def mapped(request):
    """pmap and vmap: what holds of one holds of the other."""
    return getattr(phalanx, request.param)


@pytest.fixture
def several():
    """All devices, at least two of them."""
    devices = phalanx.devices()
    if len(devices) < 2:
        pytest.skip("needs several devices")
    return devices


@pytest.fixture
def compilations(monkeypatch):
    """The names of the programs compiled since the test began."""
    names = []
    original = XlaBackend.compile

    def compile(lowered, options=None):
        names.append(lowered.name)
        return original(lowered, options)

    monkeypatch.setattr(XlaBackend, "compile", staticmethod(compile))
    return names
