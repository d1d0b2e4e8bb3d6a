"""Every exemption is from a law that somebody asks about, of something that is there."""

import ast
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import phalanx.control
import phalanx.primitives
from phalanx.core.primitive import REGISTRY
from tests.exemptions import ENTRIES, LAWS, exempt, exemptions

TESTS = Path(__file__).parent
ASKING = ("exempt", "exemptions")

for package in (phalanx.primitives, phalanx.control):  # where primitives are declared
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def is_there(name):
    """Whether it names a function, a primitive, a module of distributions or a parameter."""
    room, _, own = name.partition(".")
    if room == "primitives" and own in REGISTRY:
        return True
    return found(name) is not None or is_function(found(name.rpartition(".")[0]))


def found(name):
    try:
        return pkgutil.resolve_name(f"phalanx.{name}")
    except (ImportError, AttributeError):
        return None


def is_function(value):
    return callable(value) and not isinstance(value, ModuleType)


def asked():
    """The laws that tests ask about."""
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asks = isinstance(node, ast.Call) and ast.unparse(node.func) in ASKING
            if asks and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value


def test_laws_are_those_that_tests_ask_about():
    assert {*asked()} - {"no law"} == {*LAWS} == {law for _, law, _ in ENTRIES}


def test_what_is_exempt_is_there():
    assert not [name for name, _, _ in ENTRIES if not is_there(name)]


def test_every_exemption_has_a_reason():
    assert not [(name, law) for name, law, why in ENTRIES if len(why.split()) < 2]


def test_lines_stand_in_the_order_of_their_names():
    text = (TESTS / "exemptions.toml").read_text(encoding="utf-8")
    for room in text.split("\n\n"):
        names = [line.partition(" = ")[0] for line in room.splitlines() if " = " in line]
        assert names == sorted(names, key=lambda name: name.rpartition(".")[::2])


def test_exempt_gives_the_reason_or_none():
    assert exempt("one-program", "numpy.stack") == "a sequence of arrays"
    assert exempt("one-program", "numpy.sum") is exempt("one-program", "stack") is None
    assert exemptions("special-numbers").keys() == {
        "numpy.convolve", "numpy.correlate", "numpy.polymul",
    }  # fmt: skip
    with pytest.raises(KeyError, match="none of the laws"):
        exempt("no law", "numpy.stack")


def test_what_is_not_there_is_found():
    assert is_there("numpy.histogram.out_sharding") and is_there("primitives.cholesky")
    assert not is_there("numpy.histgram") and not is_there("primitives.cholesk")
    assert not is_there("numpy.histgram.out_sharding")
