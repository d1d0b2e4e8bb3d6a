"""Shapes with lengths that are not known are those that numbers give, for every primitive."""

import importlib
import pkgutil

import pytest

import phalanx
import phalanx.ops
from phalanx.base.lengths import numbered
from phalanx.core.primitive import REGISTRY
from phalanx.core.types import typeof
from phalanx.export import symbolic_shape
from phalanx.laws.primitives import Case

for module in pkgutil.iter_modules(phalanx.ops.__path__, "phalanx.ops."):
    importlib.import_module(module.name)

CASES = [
    (name, i)
    for name, prim in sorted(REGISTRY.items())
    for i, example in enumerate(prim.examples)
    if not example.axes and Case(prim, example).free
]


def shapes(case, lanes):
    """The types of the results of so many lanes."""
    types = [typeof(x) for x in case.operands()]
    given = [phalanx.ShapeDtypeStruct((lanes, *t.shape), t.dtype) for t in types]
    results = phalanx.eval_shape(lambda *xs: phalanx.vmap(case.bind)(*xs), *given)
    return phalanx.tree.leaves(results)


@pytest.mark.parametrize(("name", "number"), CASES)
def test_lanes_of_unknown_number(name, number):
    case = Case(REGISTRY[name], REGISTRY[name].examples[number])
    try:
        wanted = {n: shapes(case, n) for n in (1, 2, 7)}
    except phalanx.errors.MissingRule:
        return  # it has no lanes, which the laws of batching say of it
    (lanes,) = symbolic_shape("lanes")
    found = shapes(case, lanes)
    for n, types in wanted.items():
        told = [tuple([numbered(k, {"lanes": n}) for k in t.shape]) for t in found]
        assert told == [t.shape for t in types]
        assert [t.dtype for t in found] == [t.dtype for t in types]
