"""``pmap`` with a mesh: what its options mean, where lanes go, and other maps around and inside."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, lax, random
from tests.compare import close

pytestmark = pytest.mark.skipif(phalanx.device_count() != 8, reason="needs a mesh of 2 x 4")
MESH = phalanx.make_mesh((2, 4), ("data", "model")) if phalanx.device_count() == 8 else None
X = np.arange(24, dtype=np.float32).reshape(2, 4, 3)


def lane(x):
    """Something that communicates along both axes."""
    return jnp.sin(x) + 0.1 * lax.psum(x, "data") * lax.axis_index("model")


def nested(f):
    return phalanx.vmap(phalanx.vmap(f, axis_name="model"), axis_name="data")


def test_specs_are_trees_and_keywords_are_mapped_over_all_axes():
    ins = ({"w": P("data", "model"), "b": P(None, "model")},)

    @phalanx.pmap(mesh=MESH, in_axes=ins, out_axes={"y": 0, "mean": P(None, "data")})
    def f(t, scale):
        return {"y": t["w"] * t["b"] * scale, "mean": lax.pmean(t["w"], "model")}

    out = f({"w": X, "b": X[0].T}, scale=np.full((2, 4), 2.0, np.float32))
    close(out["y"], 2 * X * X[0])
    close(out["mean"], X.mean(1).T)
    assert isinstance(out["y"].sharding, NamedSharding)
    assert out["mean"].sharding.spec == P(None, "data") and out["y"].sharding.mesh is MESH


def test_an_axis_that_no_argument_tells_has_the_size_of_the_mesh():
    f = phalanx.pmap(lambda x: lax.psum(x, ("data", "model")), mesh=MESH, in_axes=P("data"),
                     out_axes=None)  # fmt: skip
    close(f(X), 4 * X.sum(0))
    copies = phalanx.pmap(lambda: lax.axis_index(("model", "data")), mesh=MESH)()
    np.testing.assert_array_equal(copies, np.arange(8).reshape(4, 2).T)


def test_keys_are_mapped_over_several_axes():
    keys = random.split(random.key(7), (2, 4))
    f = lambda k: random.normal(random.fold_in(k, lax.axis_index("model")), (2,))  # noqa: E731
    close(phalanx.pmap(f, mesh=MESH)(keys), nested(f)(keys))


def test_where_the_lanes_go():
    where = phalanx.pmap(lane, mesh=MESH).placement(np.zeros((5, 3)))
    devices = MESH.devices
    assert (where.axis, where.lanes, where.padding) == ("data", 3, 1)
    assert where.devices == tuple(devices[:, 0])
    (inside,) = where.inside  # three lanes take the first three devices
    assert (inside.axis, inside.lanes, inside.devices) == ("model", 1, tuple(devices[0, :3]))
    uneven = phalanx.pmap(lane, mesh=MESH)(np.ones((5, 3), np.float32))
    assert uneven.devices() == set(devices[:, :3].flat)
    close(phalanx.jit(phalanx.pmap(lane, mesh=MESH))(uneven), nested(lane)(uneven))


def test_what_is_not_mapped_is_left_to_the_compiler():
    """An argument that is cut along another axis stays so."""
    f = phalanx.pmap(lambda x: x + lax.psum(x, "data"), axis_name="data", mesh=MESH)
    x = phalanx.device_put(np.arange(32.0).reshape(4, 8), NamedSharding(MESH, P("data", "model")))
    y = f(x)
    close(y, x + np.asarray(x).sum(0))
    assert y.sharding.is_equivalent_to(x.sharding, 2)


def test_lanes_that_decide_differently_meet_where_the_compiler_communicates():
    """What it puts in between all devices would wait for ever for those of the other branch."""

    def turned(x):
        return jnp.roll(x, 3, -1) @ jnp.ones((64, 64), x.dtype) / 64

    def decide(x):
        here = lax.axis_index("data")
        once = lax.cond(here == 0, turned, lambda x: 2 * x, x)
        often = lax.while_loop(lambda c: c[0] <= here, lambda c: (c[0] + 1, turned(c[1])), (0, x))
        return once, often[1]

    x = np.arange(256, dtype=np.float32).reshape(2, 2, 64) / 256
    sharded = phalanx.device_put(x, NamedSharding(MESH, P("data", None, "model")))
    once, often = phalanx.pmap(decide, axis_name="data", mesh=MESH)(sharded)
    close(once, [turned(x[0]), 2 * x[1]])
    close(often, [turned(x[0]), turned(turned(x[1]))])


def test_maps_around_and_inside():
    over_both = phalanx.pmap(lane, mesh=MESH)
    pair, expected = np.stack([X, X + 1]), np.stack([nested(lane)(X), nested(lane)(X + 1)])
    shared = pair.sum(0)
    for axis, mesh in (("other", None), ("data", MESH)):  # they leave the mesh to what is inside
        f = phalanx.pmap(lambda x, a=axis: over_both(x) + lax.psum(x, a), axis, mesh=mesh)
        close(f(pair), expected + shared)

    def row(x):
        inner = phalanx.pmap(lane, axis_name="model", mesh=MESH)
        return inner(x) + phalanx.pmap(lambda v: lax.psum(v, "i"), "i", out_axes=None)(x)

    close(phalanx.pmap(row, axis_name="data", mesh=MESH)(X), nested(lane)(X) + X.sum(1)[:, None])
    both = phalanx.jit(lambda x: lax.scan(lambda c, _: (over_both(c), None), x, None, length=2)[0])
    close(both(X), nested(lane)(nested(lane)(X)))


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_a_shard_map_inside_takes_axes_that_are_left(lanes):
    def part(w, x):
        assert phalanx.get_abstract_mesh().manual_axes == ("data", "model")
        return lax.psum((w * x).sum(), "model")

    def product(w, x):
        return phalanx.shard_map(part, in_specs=P("model"), out_specs=P())(w, x)

    def lane(product):
        def f(w, x):
            chosen = lax.cond(x[0] > 8, product, lambda w, x: x.sum(), w, x)
            return chosen + lax.psum(product(w, x), "data")

        return f

    w, x = np.arange(8, dtype=np.float32), np.arange(8 * lanes, dtype=np.float32).reshape(-1, 8)
    axes = {"axis_name": "data", "in_axes": (None, 0)}
    f = phalanx.pmap(lane(product), mesh=MESH, **axes)
    oracle = phalanx.vmap(lane(lambda w, x: (w * x).sum()), **axes)
    both = [phalanx.jit(lambda w, x, f=f: (f(w, x), phalanx.grad(lambda w: f(w, x).sum())(w)))
            for f in (f, oracle)]  # fmt: skip
    for actual, expected in zip(both[0](w, x), both[1](w, x), strict=True):
        np.testing.assert_array_equal(actual, expected)
    with phalanx.disable_jit():
        np.testing.assert_array_equal(f(w, x), oracle(w, x))


def test_an_axis_inside_does_not_hide_what_differs_outside():
    with pytest.raises(phalanx.errors.ReplicationError, match="differs between lanes of 'i'"):
        phalanx.pmap(phalanx.pmap(lambda x: x, "i"), "i", out_axes=None)(X)


def test_lines_of_a_program_name_no_place_where_there_is_none():
    """The whole of a mapped function is an equation that the user has not written."""
    program = phalanx.pmap(lambda x: x + 1).trace(np.ones(2, np.float32)).program
    *inner, whole = program.lines()
    assert "test_pmap_over_mesh.py" in inner[-1] and not whole.endswith("None")
