"""What doctests take as given: the names `jnp`, `lax` and `np`."""

import importlib

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _given(doctest_namespace):
    # Imported here, not above: the environment that the tests set must come first.
    doctest_namespace.update(
        jnp=importlib.import_module("phalanx.numpy"),
        lax=importlib.import_module("phalanx.lax"),
        np=np,
    )
