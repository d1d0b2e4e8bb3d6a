"""The tree of modules: what is served, and what is said of what is not."""

import importlib
import sys

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.compat.modules import MODULES
from phalanx.compat.refused import MODULES_REFUSED
from phalanx.compat.serving import FINDER


@pytest.fixture(autouse=True)
def served(monkeypatch):
    """In a tree of modules of its own: the peer, if it is imported, is there again afterwards."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "jax"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [FINDER, *sys.meta_path])
    yield
    for name in [n for n in sys.modules if n.partition(".")[0] == "jax"]:
        del sys.modules[name]


@pytest.mark.parametrize("name", [*MODULES, *MODULES_REFUSED])
def test_every_module_is_there_with_all_names_that_it_lists(name):
    module = importlib.import_module(name)
    assert importlib.import_module(name) is module is sys.modules[name]
    assert all(hasattr(module, each) for each in dir(module))


def test_names_are_those_of_phalanx():
    import jax
    import jax.numpy.linalg
    from jax import random
    from jax.experimental.shard_map import shard_map

    assert jax.jit is phalanx.jit and jax.numpy.sin is jnp.sin
    assert jax.numpy.linalg.norm is jnp.linalg.norm and random.normal is phalanx.random.normal
    assert shard_map is phalanx.experimental.shard_map.shard_map
    assert not hasattr(jax, "run") and not hasattr(jax, "transforms")  # rooms of ours


def test_what_is_missing_is_told_with_what_to_use():
    import jax

    with pytest.raises(AttributeError, match=r"jax: tree_map is not there: use jax.tree.map"):
        jax.tree_map  # noqa: B018
    with pytest.raises(AttributeError, match=r"jax.numpy.*sine.*Did you mean 'sin"):
        jax.numpy.sine  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"Did you mean 'jax.numpy'"):
        importlib.import_module("jax.nump")
    with pytest.raises(ImportError):
        from jax.numpy import nothing  # noqa: F401


def test_modules_that_are_refused_can_be_imported():
    from jax.experimental import pallas as pl

    assert not isinstance(3, pl.BlockSpec)
    with pytest.raises(NotImplementedError, match=r"pallas.pallas_call is not offered: write the"):
        pl.pallas_call(print)
