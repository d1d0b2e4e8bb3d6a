"""What type checkers see of the package: the names that a module offers, and no other."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

import phalanx


def modules(module=phalanx):
    """The public modules, by the names under which a program reaches them."""
    found = {module.__name__: module}
    for name in dir(module):
        value = getattr(module, name)
        if isinstance(value, ModuleType) and value.__name__ not in found:
            found |= modules(value)
    return found


MODULES = modules()


def test_the_package_says_that_it_has_types():
    assert Path(phalanx.__file__).with_name("py.typed").exists()
    assert len(MODULES) > 70


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_lists_is_what_it_declares(name):
    module = importlib.import_module(name)
    old = vars(module).get("_OLD", ())  # which completion does not show
    assert sorted(set(module.__all__).difference(old)) == dir(module)
