"""Operations on arrays that the compiler cuts, evenly or not, give what they give of whole ones.

Each operand is the first part of an array that lies cut on a mesh, so that what the compiler makes
of it need not have the same length on all devices. Or results are asked for in parts, of operands
of which some are whole.
"""

import os

import numpy as np
import pytest

from phalanx.base.extended import is_key
from phalanx.core.primitive import REGISTRY
from phalanx.core.types import ArrayType
from tests.children import undone
from tests.laws.test_primitives import cases

LIMIT = None if os.environ.get("PHALANX_HYPOTHESIS") == "heavy" else 12  # of some 400
PRELUDE = """
import importlib, itertools, pkgutil
import phalanx.primitives
from phalanx.core.primitive import REGISTRY, NoRule
from phalanx.laws.blocks import Everything
from phalanx.laws.compare import LawBroken, require_same
from phalanx.laws.primitives import Case
from phalanx.sharding import AxisType, NamedSharding
for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)
MESH = make_mesh((2, 2, 2), ("i", "j", "k"), (AxisType.Auto,) * 3)
def lengthened(x):
    more = [(0, -n % 8) for n in x.shape]
    return np.pad(x, more, mode="wrap") if x.size and x.ndim else x
def cut(x, random):
    names = ["i", "j", "k"]
    random.shuffle(names)
    spec = [()] * x.ndim
    for name in names[:random.integers(1, 4)] if x.ndim else ():
        spec[random.integers(x.ndim)] += (name,)
    return P(*spec)
def one_axis_each(x, random):
    names = [*random.permutation(["i", "j", "k", None, None])]
    return P(*names[:x.ndim], *[None] * (x.ndim - len(names)))
def law(name, number, seed, results=False):
    prim = REGISTRY[name]
    case = Case(prim, prim.examples[number])
    order = 0 if isinstance(prim.linearize, NoRule) else min(1, case.example.order)
    whole = case.operands(seed)
    parts = [tuple(map(slice, x.shape)) for x in whole]
    large = [lengthened(x) for x in whole]
    f = Everything(lambda *xs: case.tree(case(*[x[p] for x, p in zip(xs, parts)])), order)
    want = jit(lambda *xs: f(xs))(*large)
    random = np.random.default_rng([seed, number, *name.encode()] if results else seed)
    specs = [P() if results and random.random() < 0.5 else cut(x, random) for x in large]
    given = [device_put(x, NamedSharding(MESH, spec)) for x, spec in zip(large, specs)]
    # XLA gets products wrong of which several axes are to cut one dimension
    asked = [one_axis_each(y, random) if results else None for y in tree.leaves(want)]
    def in_parts(*xs):
        ys, structure = tree.flatten(f(xs))
        return structure.unflatten([y if s is None else lies(y, s) for y, s in zip(ys, asked)])
    got = jit(in_parts)(*given)
    for what in want:
        require_same(LawBroken, f"{what} {specs} {asked}", got[what], want[what], rtol=1e-4)
def lies(y, spec):
    part = lax.with_sharding_constraint(y, NamedSharding(MESH, spec))
    return lax.with_sharding_constraint(part, NamedSharding(MESH, P()))
"""


def is_cut(example):
    """Whether its operands can be cut: it has no axes of its own, and no keys."""
    kinds = [a.dtype for a in example.args if isinstance(a, ArrayType)]
    return not (example.axes or any(map(is_key, kinds)))


def every_piece():
    every = [(name, n) for name, numbers in cases("jit").items() for n in numbers]
    return [(name, n) for name, n in every if is_cut(REGISTRY[name].examples[n])]


def pieces(limit, seed, results=False):
    every = every_piece()
    picked = np.random.default_rng([seed, results]).permutation(len(every))[:limit]
    return [f"law({every[i][0]!r}, {every[i][1]}, {seed}, {results})" for i in picked]


FELL = {
    "indices": "lambda x: jnp.zeros(9).at[(x[:7] * 61).astype(int) % 9].{op}(x[:7])",
    "of rows": "lambda x: jnp.zeros((9, 2)).at[(x[:5] * 61).astype(int) % 9].{op}(x[:5, None])",
    "of two": "lambda x: jnp.zeros(9).at[(x[:6].reshape(3, 2) * 61).astype(int) % 9].{op}(2.0)",
    "one": "lambda x: jnp.zeros(9).at[(x[:1] * 61).astype(int) % 9].{op}(x[:1])",
    "segments": "lambda x: ops.segment_sum(x[:7], (x[:7] * 61).astype(int) % 9, 9)",
    "table": "grad(lambda x: jnp.sin(jnp.tile(x, 8)[(x[:7] * 61).astype(int)]).sum())",
    "windows": (
        "grad(lambda x: jnp.sum(jnp.sin(lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,),"
        " 'VALID', window_dilation=(3,)))))"
    ),
    "transform": ("grad(lambda x: jnp.sin(jnp.fft.fft(jnp.outer(x, jnp.sin(x)).T).real).sum())"),
    "transform of both": "grad(lambda x: jnp.sin(jnp.fft.fft2(jnp.tile(x, (8, 1))).real).sum())",
    "overlapping": (
        "grad(lambda x: jnp.sum(jnp.sin(lax.reduce_window(x, jnp.inf, lax.min, (3,), (1,),"
        " 'SAME'))))"
    ),
}
ONES = """
def same(f, spec):
    x = np.random.default_rng(0).permutation(8).astype("f") / 8
    got = jit(f)(device_put(x, NamedSharding(MESH, spec)))
    np.testing.assert_allclose(got, jit(f)(x), rtol=1e-5, atol=1e-5)
"""


def test_what_is_indexed():
    drawn = [
        f"same({f.format(op=op)}, P({axes}))"
        for f in FELL.values()
        for op in (("add", "max", "multiply") if "{op}" in f else ("",))
        for axes in ("'i'", "('i', 'j')")
    ]
    assert not undone(drawn, devices=8, prelude=PRELUDE + ONES)


def test_what_is_indexed_spread_cropped_or_transformed():
    drawn = [
        *(f"law('scatter', {n}, {seed})" for n, seed in ((0, 9), (2, 6), (2, 9))),
        *(f"law('scatter_add', {n}, {seed})" for n, seed in ((0, 14), (2, 3), (3, 6))),
        "law('gather', 2, 5)",
        *("law('fft', 0, 101)", "law('fft', 0, 6)", "law('fft', 1, 101)"),
        "law('reduce_window_sum', 3, 5)",
    ]
    assert not undone(drawn, devices=8, prelude=PRELUDE)


HOLES = """
def holes(size, low, high, inner, parts):
    mesh = make_mesh((parts,), ("i",), (AxisType.Auto,), devices=devices()[:parts])
    def f(x):
        x = lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P()))
        made = lax.pad(x, np.float32(7), [(low, high, inner)])
        return lax.with_sharding_constraint(made, NamedSharding(mesh, P("i"))) + 0
    want = np.full(low + high + size + (size - 1) * inner, 7, "f")
    want[low : want.size - high : inner + 1] = 2 * np.arange(size, dtype="f")
    got = jit(f, out_shardings=NamedSharding(mesh, P()))(np.arange(size, dtype="f"))
    np.testing.assert_array_equal(got, want)
"""


def test_holes_in_what_is_to_be_cut():
    edges = (0, 0), (1, 0), (0, 2), (3, 1)
    drawn = [
        f"holes({size}, {low}, {high}, {inner}, {parts})"
        for size in (1, 2, 4, 5)
        for low, high in edges
        for inner, parts in ((1, 2), (2, 3), (3, 4))
    ]
    assert not undone(drawn, devices=8, prelude=PRELUDE + HOLES)


def test_results_in_parts():
    drawn = [
        f"law({prim}, {seed}, True)"
        for prim in ("'reduce_window_sum', 3", "'window_places', 0", "'select_and_gather_add', 0")
        for seed in (1, 2)
    ]
    assert not undone(drawn, devices=8, prelude=PRELUDE)


@pytest.mark.parametrize("results", [False, True])
def test_primitives(pytestconfig, results):
    drawn = pieces(LIMIT, pytestconfig.option.hypothesis_seed, results)
    assert not undone(drawn, devices=8, prelude=PRELUDE)
