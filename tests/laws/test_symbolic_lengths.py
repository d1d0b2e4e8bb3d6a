"""Every primitive does with lengths that are not known what it does with numbers."""

import importlib
import pkgutil

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
import phalanx.primitives
from phalanx import random
from phalanx.base.extended import is_key
from phalanx.base.lengths import numbered
from phalanx.core.primitive import REGISTRY
from phalanx.core.types import typeof
from phalanx.errors import InconclusiveDimensionOperation
from phalanx.export import export, symbolic_shape
from phalanx.laws.primitives import Case

for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
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


# refused while tracing, below
TRACED = [(name, number) for name, number in CASES if name != "conv_general_dilated"]


@pytest.mark.parametrize(("name", "number"), TRACED)
def test_lanes_of_unknown_number(name, number):
    case = Case(REGISTRY[name], REGISTRY[name].examples[number])
    wanted = {n: shapes(case, n) for n in (1, 2, 7)}
    (lanes,) = symbolic_shape("lanes")
    found = shapes(case, lanes)
    for n, types in wanted.items():
        told = [tuple([numbered(k, {"lanes": n}) for k in t.shape]) for t in found]
        assert told == [t.shape for t in types]
        assert [t.dtype for t in found] == [t.dtype for t in types]


# What StableHLO has for numbers alone, or does not refine.
REFUSED = {
    ("bitcast", 1): "the shape of elements of another size",
    ("bitcast", 2): "the shape of elements of another size",
    ("conv_general_dilated", 0): "the number of groups",  # each lane's kernel is one
    ("conv_general_dilated", 1): "the number of groups",
    ("conv_general_dilated", 2): "the number of groups",
}


def function_of(cases):
    """The lanes of all ``cases``, each by its own operands, as one program."""

    @phalanx.jit
    def every(operands):
        return [phalanx.vmap(c.bind)(*xs) for c, xs in zip(cases, operands, strict=True)]

    return every


def asked(cases, lanes):
    """The types of the operands of so many lanes."""
    types = [[typeof(x) for x in case.operands()] for case in cases]
    return [[phalanx.ShapeDtypeStruct((lanes, *t.shape), t.dtype) for t in ts] for ts in types]


def in_lanes(case, count):
    """Operands of so many lanes."""
    return [jnp.stack([jnp.asarray(x)] * count) for x in case.operands()]


def words(x):
    return np.asarray(random.key_data(x) if is_key(x.dtype) else x)


FIRST = {name: (name, i) for name, i in reversed(CASES) if (name, i) not in REFUSED}
ORDER = sorted(FIRST.values())
GROUPS = [ORDER[i : i + 12] for i in range(0, len(ORDER), 12)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0][0]}-{group[-1][0]}")
def test_exported_for_any_number_of_lanes(group):
    cases = [Case(REGISTRY[name], REGISTRY[name].examples[i]) for name, i in group]
    every = function_of(cases)
    exported = export(every)(asked(cases, *symbolic_shape("lanes")))
    with phalanx.config.override(disable_most_optimizations=True):  # they take most of the time
        wanted = every([in_lanes(case, 3) for case in cases])
        found = {n: exported.call([in_lanes(case, n) for case in cases]) for n in (1, 3)}
    for count, results in found.items():
        for name, ours, theirs in zip(group, results, wanted, strict=True):
            leaves = zip(phalanx.tree.leaves(ours), phalanx.tree.leaves(theirs), strict=True)
            for x, y in leaves:
                assert x.dtype == y.dtype and x.shape == (count, *y.shape[1:]), name
                given, right = words(x), words(y)[:count]
                np.testing.assert_allclose(given, right, 1e-5, 1e-5, err_msg=str(name))


@pytest.mark.parametrize("refused", REFUSED)
def test_what_is_not_exported_for_any_number_of_lanes_is_told(refused):
    name, i = refused
    case = Case(REGISTRY[name], REGISTRY[name].examples[i])
    with pytest.raises(InconclusiveDimensionOperation, match=REFUSED[refused]):
        export(function_of([case]))(asked([case], *symbolic_shape("lanes")))
