"""Every primitive obeys every law that applies to it.

A case is a law, a primitive and the number of one of its examples. Transposes and exchanges between
devices are checked of all examples at once: not every example is linear in something. Elementwise
primitives have one rule for lanes, and blocks go by it: the law of lanes says one thing of all, and
that of blocks of those with one operand (with several, derivatives have one divided and another
whole, each by a rule of the primitive's own).
"""

import importlib
import os
import pkgutil

import pytest
from msgspec.structs import replace

import phalanx.primitives
from phalanx.core.primitive import REGISTRY
from phalanx.laws.primitives import LAWS
from phalanx.primitives.basis import batch_pointwise
from phalanx.primitives.formula import sin
from tests.selection import draw

for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)

# How many of the ways in which the operands may have lanes, or be cut; the seed draws which.
HEAVY = os.environ.get("PHALANX_HYPOTHESIS") == "heavy"
CHOICES = {"batch": None if HEAVY else 6, "shard_map": 8 if HEAVY else 1}


def cases(law):
    """The primitives with the numbers of the examples to which ``law`` applies."""
    return {
        name: numbers
        for name, prim in sorted(REGISTRY.items())
        if (numbers := [i for i, e in enumerate(prim.examples) if LAWS[law].applies(prim, e)])
    }


BY_EXAMPLE = [
    (law, name, number)
    for law in ("type", "dtypes", "jit", "batch", "linearize", "vary", "copied", "shard_map")
    for name, numbers in cases(law).items()
    for number in numbers
]
# Derivatives of derivatives take half of the time. A sample has those of some primitives: what a
# rule computes is made of primitives, of each of which the derivative is checked.
TWICE = 0.25
OF_ONE_RULE = batch_pointwise(lambda: sin).__code__


def by_one_rule(law, name):
    """Whether what ``law`` says of the primitive is said of a rule that many have."""
    prim = REGISTRY[name]
    if getattr(prim.batch, "__code__", None) is not OF_ONE_RULE:
        return False
    return law == "batch" or (law == "shard_map" and all(len(e.args) == 1 for e in prim.examples))


@pytest.mark.parametrize(
    "law, elementwise, number", [case for case in BY_EXAMPLE if by_one_rule(*case[:2])]
)
def test_rule_of_many(law, elementwise, number, pytestconfig):
    test_law(law, elementwise, number, pytestconfig)


@pytest.mark.parametrize(
    "law, name, number", [case for case in BY_EXAMPLE if not by_one_rule(*case[:2])]
)
def test_law(law, name, number, pytestconfig):
    seed = pytestconfig.option.hypothesis_seed
    options = {"seed": seed, "limit": CHOICES[law]} if law in CHOICES else {}
    example = REGISTRY[name].examples[number]
    if pytestconfig.option.sample and draw(f"slopes of slopes of {name} {law}", seed) > TWICE:
        example = replace(example, order=min(example.order, 1))
    LAWS[law].check(REGISTRY[name], example, **options)


@pytest.mark.parametrize("name", cases("transpose"))
def test_transpose(name):
    prim = REGISTRY[name]
    linear = [LAWS["transpose"].check(prim, prim.examples[i]) for i in cases("transpose")[name]]
    assert sum(linear), "it is linear in nothing"


@pytest.mark.spmd
@pytest.mark.parametrize("name", cases("pmap"))
def test_pmap(name):
    for number in cases("pmap")[name]:
        LAWS["pmap"].check(REGISTRY[name], REGISTRY[name].examples[number])
