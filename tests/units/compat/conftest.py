"""What tests of the mode in which jax is served share."""

import sys

import pytest

from phalanx.compat.serving import FINDER


@pytest.fixture
def served(monkeypatch):
    """In a tree of modules of its own: the peer, if it is imported, is there again afterwards."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "jax"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [FINDER, *sys.meta_path])
    yield
    for name in [n for n in sys.modules if n.partition(".")[0] == "jax"]:
        del sys.modules[name]
