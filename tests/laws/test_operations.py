"""How many operations a primitive takes, as its declaration says, is what XLA counts.

XLA counts what it has made of a program: it counts an element of the result once where that is
rounded or chosen, functions that it knows once, and those that it writes out by what it writes.
"""

import importlib
import pkgutil

import pytest

import phalanx
import phalanx.primitives
from phalanx.core.primitive import REGISTRY
from phalanx.laws.primitives import Case
from phalanx.transforms.work import operations
from tests.exemptions import exempt

for module in pkgutil.walk_packages(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)

FACTOR = 3  # between what we say and what XLA counts, beside
FEW = 20  # operations on indices, limits and scalars
EXAMPLES = [(name, i) for name, prim in sorted(REGISTRY.items()) for i in range(len(prim.examples))]


@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_operations_are_those_that_xla_counts(case):
    name, number = case
    subject = Case(REGISTRY[name], REGISTRY[name].examples[number])
    traced = phalanx.jit(subject).trace(*subject.operands())
    ours = sum(map(operations, traced.program.walk()))
    assert ours >= 0
    compiled = traced.lower().compile()
    costs = compiled.cost_analysis()
    theirs = costs.get("flops", 0) + costs.get("transcendentals", 0)
    text = compiled.as_text()
    called = "custom-call" in text or " while(" in text
    counted = not called and 1 / FACTOR <= (ours + FEW) / (theirs + FEW) <= FACTOR
    assert counted or exempt("counted-operations", f"primitives.{name}"), (ours, theirs)
