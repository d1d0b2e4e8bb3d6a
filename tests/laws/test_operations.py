"""How many operations a primitive takes, as its declaration says, is what XLA counts; in lanes, as
many times as many.

XLA counts what it has made of a program: it counts an element of the result once where that is
rounded or chosen, functions that it knows once, and those that it writes out by what it writes.
"""

import importlib
import pkgutil
from functools import partial

import pytest

import phalanx
import phalanx.numpy as jnp
import phalanx.primitives
from phalanx.core.primitive import REGISTRY
from phalanx.laws.primitives import LAWS, Case
from phalanx.transforms.work import operations
from tests.exemptions import exempt

for module in pkgutil.walk_packages(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)

FACTOR = 3  # between what we say and what XLA counts, or what lanes take, beside
FEW = 20  # operations on indices, limits and scalars
EXAMPLES = [(name, i) for name, prim in sorted(REGISTRY.items()) for i in range(len(prim.examples))]
LANES = 64  # longer than dimensions of examples, for which theirs may be mistaken


def counted(traced):
    return sum(map(operations, traced.program.walk()))


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_lanes_take_the_operations_of_each(name):
    for example in filter(partial(LAWS["batch"].applies, REGISTRY[name]), REGISTRY[name].examples):
        subject = Case(REGISTRY[name], example)
        operands = subject.operands()
        alone = counted(phalanx.jit(subject).trace(*operands))
        rows = [jnp.broadcast_to(x, (LANES, *x.shape)) for x in operands]
        mapped = phalanx.vmap(subject, axis_size=LANES)
        together = counted(phalanx.jit(mapped).trace(*rows)) / LANES
        assert 1 / FACTOR <= (together + FEW) / (alone + FEW) <= FACTOR, (alone, together)


@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_operations_are_those_that_xla_counts(case):
    name, number = case
    subject = Case(REGISTRY[name], REGISTRY[name].examples[number])
    traced = phalanx.jit(subject).trace(*subject.operands())
    ours = counted(traced)
    assert ours >= 0
    compiled = traced.lower().compile()
    costs = compiled.cost_analysis()
    theirs = costs.get("flops", 0) + costs.get("transcendentals", 0)
    text = compiled.as_text()
    called = "custom-call" in text or " while(" in text
    agrees = not called and 1 / FACTOR <= (ours + FEW) / (theirs + FEW) <= FACTOR
    assert agrees or exempt("counted-operations", f"primitives.{name}"), (ours, theirs)
