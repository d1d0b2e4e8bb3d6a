"""What doctests take as given, the names `jnp`, `lax`, `np`, `scipy`; a cache for tests alone.

Most of the time of a test is compilation, and runs with other numbers of devices, workers and
versions of the code compile mostly the same programs: all runs of a user share a directory.
Another keeps modules as Python has compiled them.
"""

import doctest
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


def _is_defined_in(finder, module, value):
    """Examples run where something is defined, not in the public place that it is known by."""
    if isinstance(value, type):
        modules = importlib.import_module("phalanx.base.set_module").MODULES
        return modules.get(id(value), value.__module__) == module.__name__
    made = inspect.unwrap(value.fget if isinstance(value, property) else value)
    if hasattr(made, "__code__"):
        return made.__code__.co_filename == module.__file__
    return _from_module(finder, module, value)


_from_module = doctest.DocTestFinder._from_module
doctest.DocTestFinder._from_module = _is_defined_in
