"""Every exemption is from a law that somebody asks about, of something that is there."""

import ast
import importlib
import inspect
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
OF_JAX = ("signatures", "signatures-of-older-jax")  # about parameters that jax alone may have

for package in (phalanx.primitives, phalanx.control):  # where primitives are declared
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def is_there(name):
    """Whether it names a function, a primitive or a module, or a part of a function."""
    room, _, own = name.partition(".")
    if room == "primitives" and own in REGISTRY:
        return True
    return found(name) is not None or is_part(*name.rpartition(".")[::2])


def is_part(name, part):
    """Whether the function of that ``name`` has such a parameter, or ``part`` numbers a result."""
    function = found(name)
    if not callable(function) or isinstance(function, ModuleType):
        return False
    return part.isdecimal() or part in inspect.signature(function).parameters


def found(name):
    try:
        return pkgutil.resolve_name(f"phalanx.{name}")
    except (ImportError, AttributeError, ValueError):  # the last of the number of a result
        return None


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
    here = [name for name, law, _ in ENTRIES if law not in OF_JAX]
    assert not [name for name in here if not is_there(name)]
    assert not [name for law in OF_JAX for name in exemptions(law) if not found(function_of(name))]


def function_of(parameter):
    return parameter.rpartition(".")[0]


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
    assert not is_there("numpy.histgram.bins") and not is_there("numpy.histogram.bin")
