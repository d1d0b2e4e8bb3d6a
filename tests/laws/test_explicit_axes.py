"""Every primitive on operands that lie over a mesh of Explicit axes, in ways that are drawn.

Results lie as their types say, and are those of one device.
"""

import random

import numpy as np
import pytest

import phalanx
import phalanx.nn
import phalanx.numpy as jnp
import phalanx.scipy.special
from phalanx import P
from phalanx.core.primitive import REGISTRY
from phalanx.errors import ShardingTypeError
from phalanx.laws.primitives import Case
from phalanx.sharding import AxisType, NamedSharding

pytestmark = pytest.mark.skipif(phalanx.device_count() < 6, reason="needs a mesh of 2 x 3")
SIZES = {"x": 2, "y": 3}
PARTS = 12  # into which the primitives are dealt
CASES = [
    Case(prim, example) for prim in REGISTRY.values() for example in prim.examples
    if not example.axes and Case(prim, example).free and not prim.effects.of(**example.params)
]  # fmt: skip


def mesh():
    return phalanx.make_mesh(tuple(SIZES.values()), tuple(SIZES), (AxisType.Explicit,) * 2)


def drawn_spec(shape, draw):
    """Axes for some of the dimensions that they divide."""
    left, entries = list(SIZES), []
    for n in shape:
        fitting = [None, *(name for name in left if n and n % SIZES[name] == 0)]
        entries.append(draw.choice(fitting))
        left = [name for name in left if name != entries[-1]]
    return P(*entries)


def place(x, draw):
    return phalanx.device_put(x, drawn_spec(np.shape(x), draw))


def spec(x):
    """Per device the part of ``x`` that it holds."""
    return x.sharding.devices_indices_map(x.shape)


@pytest.mark.parametrize("part", range(PARTS))
def test_results_lie_as_types_say(part):
    draw, told = random.Random(part), 0
    with phalanx.set_mesh(mesh()):
        for case in CASES[part::PARTS]:
            alone = case.operands()
            operands = [place(x, draw) for x in alone]
            try:
                types = phalanx.eval_shape(case.bind, *operands)
            except ShardingTypeError:
                continue
            results = phalanx.jit(case.bind)(*operands)
            for x, type in zip(case.tree(results), case.tree(types), strict=True):
                assert phalanx.typeof(x).sharding == type.sharding, case.who("Explicit axes")
                said = NamedSharding(mesh(), type.sharding.spec)
                assert spec(x) == said.devices_indices_map(x.shape), case.who("Explicit axes")
                told += any(type.sharding.spec)
            with phalanx.set_mesh(None):
                wanted = phalanx.jit(case.bind)(*alone)
            for x, y in zip(case.tree(results), case.tree(wanted), strict=True):
                if jnp.issubdtype(x.dtype, jnp.inexact):
                    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5, err_msg=case.prim.name)
                elif not jnp.issubdtype(x.dtype, phalanx.dtypes.prng_key):
                    assert np.array_equal(x, y), case.who("Explicit axes")
    assert told


@pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 2 x 2")
@pytest.mark.parametrize(
    ("lhs", "rhs", "asked"),
    [  # each of these XLA's partitioner computes wrong, if it is left to it
        (P(None, "x"), P("x", None), P("x", ("z", "y"))),
        (P(None, "x"), P("x", None), P(("z", "y"), "x")),
        (P("z", "x"), P("x", "z"), P("x", ("y", "z"))),
        (P(("y", "z"), "x"), P("x", "y"), P("x", ("z", "y"))),
        (P("y", "x"), P("x", None), P("x", ("z", "y"))),
        (P(("z", "y"), "x"), P("z", "y"), P("z", ("x", "y"))),
        (P(None, "x"), P("z", "y"), P("x", ("z", "y"))),
    ],
)
def test_products_asked_for_along_several_axes(lhs, rhs, asked):
    x, w = np.sin(np.arange(1152.0).reshape(48, 24)), np.cos(np.arange(576.0).reshape(24, 24))
    grid = phalanx.make_mesh((2, 2, 2), ("x", "y", "z"), (AxisType.Explicit,) * 3)
    with phalanx.set_mesh(grid):
        given = [phalanx.device_put(np.float32(v), p) for v, p in ((x, lhs), (w, rhs))]
        made = phalanx.jit(lambda x, w: jnp.dot(x, w, out_sharding=asked))(*given)
        assert made.sharding.spec == asked
        np.testing.assert_allclose(made, x @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 4")
@pytest.mark.parametrize("letters", ["bij,bjk->bik", "ibj,bjk->ibk"])
@pytest.mark.parametrize("lane, summed", ["xy", "yx"])
@pytest.mark.parametrize("last", ["i", "k"])
def test_lanes_of_products_cut_by_what_cut_the_sum(letters, lane, summed, last):
    operands, result = letters.split("->")
    before, after = {"b": lane, "j": summed}, {"b": summed, last: lane}
    x, w = np.sin(np.arange(256.0)).reshape(8, 4, 8), np.cos(np.arange(256.0)).reshape(8, 8, 4)
    if letters.startswith("i"):
        x = x.swapaxes(0, 1)
    asked = P(*map(after.get, result))

    def product(x, w):
        return jnp.einsum(letters, x, w, out_sharding=asked)

    with phalanx.set_mesh(phalanx.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2)):
        specs = [P(*map(before.get, operand)) for operand in operands.split(",")]
        given = [phalanx.device_put(np.float32(v), s) for v, s in zip((x, w), specs, strict=True)]
        made = phalanx.jit(product)(*given)
        assert made.sharding.spec == asked
        np.testing.assert_allclose(made, np.einsum(letters, x, w), rtol=1e-4, atol=1e-5)
        slopes = phalanx.jit(phalanx.grad(lambda *a: (product(*a) ** 2).sum(), (0, 1)))(*given)
    whole = phalanx.grad(lambda *a: (jnp.einsum(letters, *a) ** 2).sum(), (0, 1))(
        np.float32(x), np.float32(w)
    )
    for found, wanted in zip(slopes, whole, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 2 x 2")
@pytest.mark.parametrize(
    ("lhs", "rhs", "asked"),
    [
        (P(("z", "y"), "x"), P(None, "x"), P(("x", "y"), "z")),
        (P("x", "z"), P("x", ("y", "z")), P(("x", "y"), "z")),
    ],
)
def test_cotangents_of_arguments_that_several_axes_cut(lhs, rhs, asked):
    x, w = np.sin(np.arange(1152.0).reshape(48, 24)), np.cos(np.arange(576.0).reshape(24, 24))
    ct = np.cos(0.7 * np.arange(1152.0)).reshape(48, 24)
    grid = phalanx.make_mesh((2, 2, 2), ("x", "y", "z"), (AxisType.Explicit,) * 3)
    with phalanx.set_mesh(grid):
        pairs = ((x, lhs), (w, rhs), (ct, asked))
        given = [phalanx.device_put(np.float32(v), p) for v, p in pairs]

        @phalanx.jit
        def cotangents(x, w, ct):
            return phalanx.vjp(lambda x, w: jnp.dot(x, w, out_sharding=asked), x, w)[1](ct)

        of_x, of_w = cotangents(*given)
        assert of_x.sharding.spec == lhs and of_w.sharding.spec == rhs
        np.testing.assert_allclose(of_x, ct @ w.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(of_w, x.T @ ct, rtol=1e-4, atol=1e-4)
