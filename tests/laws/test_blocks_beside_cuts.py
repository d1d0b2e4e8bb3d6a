"""Functions of blocks over some axes of a mesh, where the compiler cuts along the others.

They have the values and derivatives that they have over lanes, and end no process.
"""

import os

import numpy as np
import pytest

from tests.children import undone
from tests.laws.test_primitives import cases
from tests.laws.test_slopes_in_shard_map import BODIES, INSIDE

LIMIT = 200 if os.environ.get("PHALANX_HYPOTHESIS") == "heavy" else 8  # of some 900
PRELUDE = """
import importlib, pkgutil
import phalanx.primitives
from phalanx.core.primitive import REGISTRY, NoRule
from phalanx.laws.blocks import check_blocks, drawn_cuts
from phalanx.laws.compare import LawBroken
from phalanx.laws.primitives import Case
from phalanx.sharding import AxisType
from tests.laws.test_slopes_in_shard_map import BACKWARD_ONLY, BODIES, INSIDE
for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)
AUTO = AxisType.Auto
BLOCKS = make_mesh((2, 1), ("x", "y"), (AUTO,) * 2)
OVER = make_mesh((2, 1, 2, 2), ("x", "y", "i", "j"), (AUTO,) * 4)
def primitive(name, number, seed):
    prim = REGISTRY[name]
    case = Case(prim, prim.examples[number])
    order = 0 if isinstance(prim.linearize, NoRule) else case.example.order
    law(name, lambda *xs: case.tree(case(*xs)), case.operands, order, seed)
def body(name, inside, seed):
    f = INSIDE[inside](BODIES[name])
    def operands(seed):
        return [*np.random.default_rng(seed).normal(size=(3, 3)).astype("f")]
    modes = ("rev",) if name in BACKWARD_ONLY else ("fwd", "rev")
    order = 1 if name in BACKWARD_ONLY else 2
    law(name, lambda *xs: tree.leaves(f(*xs)), operands, order, seed, modes)
def law(name, f, operands, order, seed, modes=("fwd", "rev")):
    positions = [operands(seed + n) for n in range(BLOCKS.size)]
    cuts = drawn_cuts(len(positions[0]), BLOCKS, 1, seed)
    check_blocks(LawBroken, name, f, positions, BLOCKS, cuts, order, modes, over=OVER)
"""


def pieces(limit, seed):
    every = [f"primitive({name!r}, {n}" for name, all in cases("shard_map").items() for n in all]
    every += [f"body({name!r}, {inside!r}" for name in BODIES for inside in INSIDE]
    picked = np.random.default_rng(seed).permutation(len(every))[:limit]
    return [f"{every[i]}, {seed})" for i in picked]


@pytest.fixture
def seed(pytestconfig):
    return pytestconfig.option.hypothesis_seed


def test_blocks_and_lanes(seed):
    drawn = pieces(LIMIT, seed)
    assert not undone(drawn, devices=8, prelude=PRELUDE)
