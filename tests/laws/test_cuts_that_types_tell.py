"""Primitives of operands that lie as types tell: cut, or as sums that are still to be taken.

Values and derivatives are those of whole operands, or types refuse them in words.
"""

import os

import numpy as np

from tests.children import undone
from tests.laws.test_uneven_cuts import every_piece

LIMIT = None if os.environ.get("PHALANX_HYPOTHESIS") == "heavy" else 16  # of some 800
PRELUDE = """
import importlib, pkgutil
import phalanx.primitives
from msgspec.structs import replace
from phalanx.core.correspond import ALL
from phalanx.core.primitive import REGISTRY, NoRule
from phalanx.core.types import ArrayType
from phalanx.errors import ShardingTypeError
from phalanx.laws.compare import LawBroken, require_same, rounding
from phalanx.laws.derivatives import direction, inexact_part
from phalanx.laws.primitives import Case
from phalanx.sharding import AxisType, NamedSharding
for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)
AXES = ("i", "j", "k")

def drawn_mesh(random):
    kinds = [AxisType.Auto if random.random() < 0.3 else AxisType.Explicit for _ in AXES]
    kinds[random.integers(3)] = AxisType.Explicit
    return make_mesh((2, 2, 2), AXES, tuple(kinds))

def twice_as_long(prim, example):
    def twice(a):
        return a.update(shape=tuple([2 * n for n in a.shape])) if isinstance(a, ArrayType) else a
    more = replace(example, args=tuple(map(twice, example.args)))
    try:
        case = Case(prim, more)
        jit(case)(*case.operands())
    except (TypeError, ValueError):
        return example
    return more

def drawn_cut(shape, names, random):
    spec, sizes = [()] * len(shape), list(shape)
    for name in names:
        fits = [d for d, n in enumerate(sizes) if n and n % 2 == 0]
        if fits and random.random() < 0.7:
            dim = int(random.choice(fits))
            spec[dim] += (str(name),)
            sizes[dim] //= 2
    return P(*spec)

def is_number(x):
    return jnp.issubdtype(x.dtype, jnp.inexact)

def summands(case, given, random):
    linear = case.prim.linear
    every = [tuple(range(len(case.example.args)))] if linear == ALL else linear
    groups = [[case.free.index(i) for i in g] for g in every if {*g} <= {*case.free}]
    groups = [g for g in groups if g and all(is_number(given[i]) for i in g)]
    return groups[random.integers(len(groups))] if groups else ()

def left_as_sum(x, mesh, axes, spec, random):
    n = 2 ** len(axes)
    parts = random.uniform(-1, 1, (n - 1, *x.shape)).astype(x.dtype)
    parts = np.concatenate([parts, x[None] - parts.sum(0, keepdims=True, dtype=x.dtype)])
    parts = device_put(parts, NamedSharding(mesh, P(tuple(axes), *spec)))
    told = [tuple(a for a in names or () if a in explicit(mesh)) for names in spec]
    return lax.reduce_sum(parts, (0,), out_sharding=P(*told, unreduced={*axes}))

def explicit(mesh):
    return [a for a, kind in zip(AXES, mesh.axis_types) if kind == AxisType.Explicit]

def whole(x):
    return reshard(x, P(*[None] * x.ndim)) if typeof(x).sharding.spec.unreduced else x

def cotangents(types):
    for t in types:
        spec = t.sharding.spec
        yield device_put(direction(np.empty(t.shape, t.dtype), 1), P(*spec, reduced=spec.unreduced))

def drawn_operands(case, lanes, seed):
    if not lanes or not case.free:
        return case.bind, case.operands(seed)
    return vmap(case.bind), [np.stack(xs) for xs in zip(*map(case.operands, range(8)))]

def law(name, number, seed, lanes, sums):
    prim, random = REGISTRY[name], np.random.default_rng([seed, number, *name.encode()])
    case = Case(prim, twice_as_long(prim, prim.examples[number]))
    bound, alone = drawn_operands(case, lanes, seed)
    values = lambda *xs: case.tree(bound(*xs))
    mesh = drawn_mesh(random)
    summed = summands(case, alone, random) if sums else ()
    over = explicit(mesh)[: random.integers(1, 3)] if sums else []
    numbers = [i for i, x in enumerate(alone) if is_number(x)]
    slopes = not isinstance(prim.linearize, NoRule) and case.example.order and numbers
    ts = [direction(alone[i], 2) for i in numbers]
    def forward(xs, ts):
        inner, xs = inexact_part(values, xs)
        return jvp(inner, (xs,), (ts,))[1]
    def reverse(xs, cts):
        inner, xs = inexact_part(values, xs)
        return vjp(inner, xs)[1](cts)[0]
    def placed(x, i):
        if i in summed:
            return left_as_sum(x, mesh, over, specs[i], random)
        return device_put(x, NamedSharding(mesh, specs[i]))
    with set_mesh(mesh):
        free = [[a for a in AXES if i not in summed or a not in over] for i in range(len(alone))]
        orders = [random.permutation(names) for names in free]
        if summed:  # XLA moves parts of sums wrong that axes of its own choice cut first
            orders = [sorted(names, key=lambda a: a not in explicit(mesh)) for names in orders]
        specs = [drawn_cut(x.shape, names, random) for x, names in zip(alone, orders)]
        given = [placed(x, i) for i, x in enumerate(alone)]
        tangents = [placed(t, i) for i, t in zip(numbers, ts)]
        try:
            types = eval_shape(values, *given)
        except ShardingTypeError:
            return
        found = {"values": jit(values)(*given)}
        if slopes:
            cts = list(cotangents([t for t in types if is_number(t)]))
            found |= {"jvp": jit(forward)(given, tangents), "vjp": jit(reverse)(given, cts)}
        found = tree.map(whole, found)
    want = {"values": jit(values)(*alone)}
    if slopes:
        cts = [direction(np.empty(t.shape, t.dtype), 1) for t in types if is_number(t)]
        want |= {"jvp": jit(forward)(alone, ts), "vjp": jit(reverse)(alone, cts)}
    rtol = max([1e-4, *(rounding(t.dtype) for t in types)])
    for what in want:
        said = f"{what} {specs} {mesh.axis_types} {summed} {over}"
        require_same(LawBroken, said, found[what], want[what], rtol=rtol)
"""


def pieces(limit, seed):
    every = every_piece()
    random = np.random.default_rng(seed)
    picked = random.permutation(len(every))[:limit]
    ways = random.integers(0, 2, (len(picked), 2)).astype(bool).tolist()
    return [
        f"law({every[i][0]!r}, {every[i][1]}, {seed}, lanes={lanes}, sums={sums})"
        for i, (lanes, sums) in zip(picked, ways, strict=True)
    ]


def test_what_is_cropped():
    drawn = [
        *(f"law('reduce_window_sum', 3, {seed}, False, True)" for seed in (1, 2, 3)),
        *(f"law('cummin', 0, {seed}, False, False)" for seed in (1, 11)),
        "law('cummax', 0, 16, False, False)",
        "law('cumprod', 0, 10, False, False)",
        "law('reduce_window_min', 0, 3624815271, False, True)",
    ]
    assert not undone(drawn, devices=8, prelude=PRELUDE)


def test_primitives(pytestconfig):
    drawn = pieces(LIMIT, pytestconfig.option.hypothesis_seed)
    assert not undone(drawn, devices=8, prelude=PRELUDE)
