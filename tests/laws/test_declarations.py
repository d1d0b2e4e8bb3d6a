"""Every primitive is declared in full, in one place."""

import importlib
import pkgutil

import numpy as np
import pytest

import phalanx.primitives
from phalanx.core.primitive import REGISTRY, DualRule, NoRule, Primitive, ZeroDerivative
from phalanx.laws.parameters import check_parameters
from tests.exemptions import exempt

WITH_WINDOWS = sorted(n for n, p in REGISTRY.items() if p.elements.windows is not None)
RULES = ("linearize", "transpose", "batch")


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_declaration_is_whole(name):
    prim = REGISTRY[name]
    assert prim.name == name and prim.doc
    assert callable(prim.type) and callable(prim.lower)
    for which in RULES:
        rule = getattr(prim, which)
        reasoned = isinstance(rule, NoRule | ZeroDerivative) and rule.why
        whole = callable(rule) or isinstance(rule, DualRule)
        assert whole or reasoned, f"{name}.{which} is neither a rule nor a reason"
    assert prim.vary is None or callable(prim.vary)
    windows = prim.elements.windows
    assert windows is None or callable(windows)
    why = exempt("declared-examples", f"primitives.{name}")
    assert prim.examples or why, f"{name} has no examples"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_parameters_are_those_declared(name):
    check_parameters(REGISTRY[name])


def test_no_name_is_taken_twice():
    for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Primitive):
                assert REGISTRY[value.name] is value


@pytest.mark.parametrize("name", WITH_WINDOWS)
def test_windows_are_those_of_the_first_operand(name):
    prim = REGISTRY[name]
    for example in prim.examples:
        operands = [np.zeros(a.shape, a.dtype) for a in example.args]
        indices, sizes, dims = prim.elements.windows(*operands, **example.params)
        assert len(sizes) == operands[0].ndim and indices.shape[-1] == len(dims)
        assert all(s <= n for s, n in zip(sizes, operands[0].shape, strict=True))
