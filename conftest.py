"""What doctests take as given, the names `jnp`, `lax`, `np`, `scipy`; a cache for tests alone.

Most of the time of a test is compilation, and runs with other numbers of devices, workers and
versions of the code compile mostly the same programs: all runs of a user share a directory.
Another keeps modules as Python has compiled them.
"""

import getpass
import importlib
import inspect
import os
import tempfile

import numpy as np
import pytest

CACHE = os.path.join(tempfile.gettempdir(), f"phalanx-tests-of-{getpass.getuser()}")
os.environ.setdefault("PHALANX_CACHE_DIR", CACHE)
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    # Not beside the code, then: tests start hundreds of processes, most of whose work is to import.
    os.environ.setdefault("PYTHONPYCACHEPREFIX", f"{CACHE}-bytecode")


@pytest.fixture(autouse=True)
def _given(doctest_namespace):
    # Imported here, not above: the environment that the tests set must come first.
    doctest_namespace.update(
        jnp=importlib.import_module("phalanx.numpy"),
        lax=importlib.import_module("phalanx.lax"),
        np=np,
        scipy=importlib.import_module("phalanx.scipy"),
    )


def pytest_collection_modifyitems(items):
    """Examples run where a function is defined, not again where it is handed on."""
    items[:] = [item for item in items if not _handed_on(item)]


def _handed_on(item):
    if not isinstance(item, pytest.DoctestItem):
        return False
    given = item.dtest.globs
    function = inspect.unwrap(given.get(item.name.removeprefix(f"{given['__name__']}.")))
    return hasattr(function, "__code__") and function.__code__.co_filename != str(item.path)
