"""Primitives and their examples, as parameters of every test that takes ``prim, example``."""

import importlib
import pkgutil

import pytest

import phalanx.ops
from phalanx.core.primitive import REGISTRY

for module in pkgutil.iter_modules(phalanx.ops.__path__, "phalanx.ops."):
    importlib.import_module(module.name)


def pytest_generate_tests(metafunc):
    if "example" in metafunc.fixturenames:
        rows = [
            pytest.param(prim, example, id=f"{name}-{i}")
            for name, prim in sorted(REGISTRY.items())
            for i, example in enumerate(prim.examples)
        ]
        metafunc.parametrize("prim, example", rows)
