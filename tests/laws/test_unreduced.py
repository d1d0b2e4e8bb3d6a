"""Every linear primitive on operands whose sum over devices is still to be taken."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.core.correspond import ALL
from phalanx.core.primitive import REGISTRY
from phalanx.errors import ShardingTypeError
from phalanx.laws.primitives import Case
from phalanx.sharding import AxisType

pytestmark = pytest.mark.skipif(phalanx.device_count() < 6, reason="needs a mesh of 2 x 3")
RNG = np.random.default_rng(0)
CASES = [
    Case(prim, example) for prim in REGISTRY.values() for example in prim.examples
    if not example.axes and Case(prim, example).free and prim.dims is not None
    and not prim.effects.of(**example.params)
]  # fmt: skip
LEFT = P(unreduced={"y"})


def mesh():
    return phalanx.make_mesh((2, 3), ("x", "y"), (AxisType.Explicit,) * 2)


def is_number(x):
    return jnp.issubdtype(x.dtype, jnp.inexact)


def left_as_sum(x):
    """``x`` as the sum, still to be taken, of a part on each position of ``y``."""
    x = np.asarray(x)
    parts = RNG.normal(size=(2, *x.shape)).astype(x.dtype)
    parts = np.concatenate([parts, x[None] - parts.sum(0, keepdims=True, dtype=x.dtype)])
    return lax.reduce_sum(phalanx.device_put(parts, P("y")), (0,), out_sharding=LEFT)


def groups(case):
    """The operands, by number, in which the primitive says that it is linear together."""
    linear = case.prim.linear
    every = [tuple(range(len(case.example.args)))] if linear == ALL else linear
    free = list(case.free)
    return [tuple(map(free.index, group)) for group in every if set(group) <= set(free)]


def summed(x):
    return phalanx.reshard(x, P(*[None] * x.ndim))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.prim.name)
def test_sums_that_are_still_to_be_taken(case):
    with phalanx.set_mesh(mesh()):
        operands = list(case.operands())
        for group in groups(case):
            if not all(is_number(operands[i]) for i in group):
                continue
            given = [left_as_sum(x) if i in group else x for i, x in enumerate(operands)]
            try:
                results = case.tree(phalanx.jit(case.bind)(*given))
            except ShardingTypeError:
                assert not all(is_number(x) for x in case.tree(case.bind(*operands)))
                continue
            for x, y in zip(results, case.tree(case.bind(*operands)), strict=True):
                assert phalanx.typeof(x).sharding.spec.unreduced == {"y"}, case.who("sums")
                np.testing.assert_allclose(
                    summed(x), y, rtol=1e-3, atol=1e-3, err_msg=case.who("sums")
                )
        if not case.prim.linear and any(map(is_number, operands)):
            given = [left_as_sum(x) if is_number(x) else x for x in operands]
            with pytest.raises(ShardingTypeError, match=r"reshard\(x, P\("):
                case.bind(*given)


WITH_SLOPES = [
    case for case in CASES if callable(case.prim.linearize) and any(map(is_number, case.operands()))
]


@pytest.mark.parametrize("case", WITH_SLOPES, ids=lambda case: case.prim.name)
def test_cotangents_of_what_is_reduced(case):
    operands = list(case.operands())
    numbers = [i for i, x in enumerate(operands) if is_number(x)]

    def function(*xs):
        every = [*operands]
        for i, x in zip(numbers, xs, strict=True):
            every[i] = x
        return [y for y in case.tree(case.bind(*every)) if is_number(y)]

    @phalanx.jit
    def pulled(xs, cts):
        return phalanx.vjp(function, *xs)[1](cts)

    given = [operands[i] for i in numbers]
    results = phalanx.eval_shape(function, *given)
    cts = [np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype) for y in results]
    with phalanx.set_mesh(mesh()):
        reduced = [phalanx.reshard(x, P(*[None] * np.ndim(x), reduced={"y"})) for x in given]
        found = pulled(reduced, phalanx.device_put(cts, P()))
        left = [phalanx.typeof(x).sharding.spec.unreduced for x in found]
        found = [np.asarray(summed(x)) for x in found]
        assert all(axes == {"y"} or not x.any() for axes, x in zip(left, found, strict=True))
    for x, y in zip(found, pulled(given, cts), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3, err_msg=case.who("sums"))


@pytest.mark.parametrize("place", range(3))
def test_beside_axes_that_are_left_to_the_compiler(place):
    kinds = [AxisType.Auto] * 3
    kinds[place] = AxisType.Explicit
    axis, x = "abc"[place], RNG.normal(size=(6, 6)).astype("f")
    left = P(unreduced={axis})
    with phalanx.set_mesh(phalanx.make_mesh((1, 2, 3), ("a", "b", "c"), kinds)):
        for f, want in [
            (lambda u: u, x), (lambda u: 3 * u.T, 3 * x.T),
            (lambda u: u.sum(0) + u[0], x.sum(0) + x[0]),
        ]:  # fmt: skip
            y = phalanx.jit(lambda x, f=f: summed(f(phalanx.reshard(x, left))))(x)
            np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
        slope = phalanx.grad(lambda w: jnp.sum(jnp.sin(x @ phalanx.reshard(w, P(reduced={axis})))))
        np.testing.assert_allclose(phalanx.jit(slope)(x), x.T @ np.cos(x @ x), rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 2 x 2")
@pytest.mark.parametrize("axes", [{"a"}, {"b"}, {"a", "b"}])
def test_beside_blocks_of_blocks(axes):
    """There the module counts the axes in another order than the mesh does."""
    x = RNG.normal(size=(4, 4)).astype("f")

    def columns(block):
        cut = P(None, "a")
        return phalanx.shard_map(jnp.sin, in_specs=cut, out_specs=cut, axis_names={"a"})(block)

    @phalanx.jit
    def function(x):
        cut, both, left = P("b"), P("a", "b"), phalanx.reshard(x, P(unreduced=axes))
        blocks = phalanx.shard_map(columns, in_specs=cut, out_specs=cut, axis_names={"b"})
        tiles = phalanx.shard_map(jnp.sin, in_specs=both, out_specs=both, axis_names={"a", "b"})
        return summed(3 * left), blocks(summed(x)), tiles(x)

    with phalanx.set_mesh(phalanx.make_mesh((2, 2, 2), tuple("abc"), (AxisType.Explicit,) * 3)):
        found = function(x)
    for y, want in zip(found, (3 * x, np.sin(x), np.sin(x)), strict=True):
        np.testing.assert_allclose(y, want, rtol=1e-5)
