"""How reshapes lie over Explicit axes: dimensions that are taken apart, joined, and of length 1."""

import itertools
import math

import numpy as np
import pytest

import phalanx
from tests.releases import OLDER

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(
    min(jax.device_count(), phalanx.device_count()) < 8, reason="needs a mesh of 1 x 2 x 4"
)
SIZES = {"o": 1, "a": 2, "b": 4}
REFUSALS = {
    "phalanx": phalanx.errors.ShardingTypeError,
    "jax": Exception,  # some cases end in assertions of its own
}
SHAPES = [
    [(16,), (2, 8), (8, 2), (4, 4), (2, 2, 4), (1, 16), (16, 1), (2, 1, 8), (1, 2, 4, 2)],
    [(24,), (2, 12), (8, 3), (4, 6), (2, 4, 3), (2, 3, 4), (8, 1, 3), (1, 24), (4, 2, 3)],
    [(8, 6), (4, 2, 6), (48,), (8, 3, 2), (4, 2, 3, 2), (2, 4, 6), (8, 1, 6), (1, 8, 6)],
]


def specs(shape):
    """Ways to cut an array: each axis along one dimension, or along none."""
    for places in itertools.product([None, *range(len(shape))], repeat=3):
        for order in (SIZES, [*reversed(SIZES)]):
            held = dict(zip(SIZES, places, strict=True))
            spec = [tuple([a for a in order if held[a] == d]) for d in range(len(shape))]
            sizes = [math.prod([SIZES[a] for a in names]) for names in spec]
            if all(n % size == 0 for n, size in zip(shape, sizes, strict=True)):
                yield tuple(spec)


CASES = sorted(
    {
        (shape, spec, new)
        for shapes in SHAPES
        for shape, new in itertools.product(shapes, repeat=2)
        for spec in specs(shape)
        if any(spec)
    }
)
SOME = [CASES[i] for i in np.random.default_rng(0).permutation(len(CASES))[:400]]


def mesh_of(m):
    explicit = m.sharding.AxisType.Explicit
    return m.make_mesh(tuple(SIZES.values()), tuple(SIZES), (explicit,) * 3)


def spec_of(m, shape, spec, new):
    """The spec of a reshaped array by its type; None where it is refused."""
    with m.set_mesh(mesh_of(m)) as mesh:
        sharding = m.sharding.NamedSharding(mesh or mesh_of(m), m.P(*[s or None for s in spec]))
        x = m.ShapeDtypeStruct(shape, np.float32, sharding=sharding)
        try:
            out = m.eval_shape(lambda x: x.reshape(new), x)
        except Exception as e:  # some cases end in assertions of jax's own
            assert m is jax or isinstance(e, phalanx.errors.ShardingTypeError), e
            return None
        names = [(s,) if isinstance(s, str) else tuple(s or ()) for s in out.sharding.spec]
        return [*names, *[()] * (len(new) - len(names))]


@pytest.mark.skipif(OLDER, reason="older releases let axes of size 1 cut what is joined")
def test_they_lie_as_those_of_jax():
    served = 0
    for case in SOME:
        theirs = spec_of(jax, *case)
        if theirs is not None:
            assert spec_of(phalanx, *case) == theirs, case
            served += 1
    assert served > 200


def test_the_case_of_a_batch_over_one_device():
    tensor = phalanx.sharding.AxisType.Explicit
    with phalanx.set_mesh(phalanx.make_mesh((1, 8), ("data", "tensor"), (tensor,) * 2)):
        x = phalanx.device_put(np.zeros((1, 128), np.float32), phalanx.P("data", "tensor"))
        assert phalanx.typeof(x.reshape(-1, 8, 16)).sharding.spec[:2] == ("data", "tensor")


WITH_DATA = [case for case in SOME if case[0] != case[2] and case[1] != ()][:14]


@pytest.mark.parametrize("case", WITH_DATA, ids=str)
def test_values_and_gradients_are_those_of_whole_arrays(case):
    shape, spec, new = case
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    y = np.sin(x).reshape(new)
    with phalanx.set_mesh(mesh_of(phalanx)):
        there = phalanx.device_put(x, phalanx.P(*[s or None for s in spec]))
        f = lambda x: x.reshape(new)  # noqa: E731
        if spec_of(phalanx, *case) is None:
            with pytest.raises(phalanx.errors.ShardingTypeError, match="how the result is to lie"):
                f(there)
            return
        for out in (f(there), phalanx.jit(f)(there)):
            np.testing.assert_array_equal(np.asarray(out), x.reshape(new))
        weights = phalanx.reshard(y, phalanx.typeof(f(there)).sharding)
        slope = phalanx.grad(lambda x: (f(x) * weights).sum())(there)
        np.testing.assert_allclose(np.asarray(slope), y.reshape(shape), rtol=1e-6)
        assert phalanx.typeof(slope).sharding == phalanx.typeof(there).sharding


def test_no_elements_at_all_need_no_order():
    with phalanx.set_mesh(mesh_of(phalanx)):
        x = phalanx.device_put(np.zeros((0, 4), np.float32), phalanx.P(None, "b"))
        with pytest.raises(phalanx.errors.ShardingTypeError, match="how the result is to lie"):
            x.reshape(0, 2, 2)
        assert phalanx.numpy.zeros((0, 4)).reshape(0, 2, 2).shape == (0, 2, 2)
