"""Every primitive is declared in full, and computes what its type rule says, eager or compiled."""

import importlib
import pkgutil

import pytest

import phalanx.ops
from phalanx.core.primitive import REGISTRY, NoRule, Primitive, ZeroDerivative
from phalanx.laws.primitives import law_jit, law_pmap, law_type, law_vary

# Their operands are whatever their programs take: test_subprograms.py.
# Their parameters are programs or functions; they have tests of their own.
OF_FUNCTIONS = {
    "call", "checkpoint", "cond", "custom_jvp", "custom_vjp", "custom_vjp_linear", "host_call",
    "mapped", "scan", "while",
}  # fmt: skip
RULES = ("linearize", "transpose", "batch")
NAMED = [n for n, p in sorted(REGISTRY.items()) if p.axes is not None and n not in OF_FUNCTIONS]


def test_type(prim, example):
    law_type(prim, example)


def test_jit(prim, example):
    law_jit(prim, example)


def test_vary(prim, example):
    law_vary(prim, example)


@pytest.mark.spmd
@pytest.mark.parametrize("name", NAMED)
def test_pmap(name):
    for one in REGISTRY[name].examples:
        law_pmap(REGISTRY[name], one)


# ---- the declarations -------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_declaration_is_whole(name):
    prim = REGISTRY[name]
    assert prim.name == name and prim.doc
    assert callable(prim.type) and callable(prim.lower)
    for which in RULES:
        rule = getattr(prim, which)
        if which == "linearize" and callable(prim.linearize_some or prim.push):
            continue
        reasoned = isinstance(rule, NoRule | ZeroDerivative) and rule.why
        assert callable(rule) or reasoned, f"{name}.{which} is neither a rule nor a reason"
    assert prim.vary is None or callable(prim.vary)
    assert prim.examples or name in OF_FUNCTIONS, f"{name} has no examples"


def test_no_name_is_taken_twice():
    for module in pkgutil.iter_modules(phalanx.ops.__path__, "phalanx.ops."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Primitive):
                assert REGISTRY[value.name] is value
