"""How results lie over a mesh of Explicit axes, against jax: as types say, and as they do."""

from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.nn
import phalanx.numpy
import phalanx.scipy.special
import phalanx.sharding
from tests.releases import OLDER

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(
    min(jax.device_count(), phalanx.device_count()) < 8, reason="needs a mesh of 2 x 4"
)
RNG = np.random.default_rng(0)


def words(m):
    """The names that a case speaks of, of Phalanx or of jax."""
    return SimpleNamespace(
        m=m, np=m.numpy, lax=m.lax, nn=m.nn, P=m.sharding.PartitionSpec, reshard=m.reshard,
        special=m.scipy.special, auto=m.sharding.auto_axes,
    )  # fmt: skip


# what is done; the shapes and specs of the operands
CASES = {
    "sum of two": (lambda w, x, y: x + y, [((8, 16), "x", None), ((8, 16), None, "y")]),
    "one is whole": (lambda w, x, y: x * y, [((8, 16), "x", "y"), ((8, 16),)]),
    "a row to a matrix": (lambda w, x, y: x + y, [((16,), "y"), ((8, 16), "x")]),
    "a scalar": (lambda w, x: 2 * x, [((8, 16), "x", "y")]),
    "transposed": (lambda w, x: x.T, [((8, 16), "x", "y")]),
    "sum over a cut dimension": (lambda w, x: x.sum(0), [((8, 16), "x", "y")]),
    "sum over all": (lambda w, x: x.sum(), [((8, 16), "x", "y")]),
    "max": (lambda w, x: x.max(1), [((8, 16), "x", "y")]),
    "argmax": (lambda w, x: x.argmax(1), [((8, 16), "x", "y")]),
    "joined, both cut": (lambda w, x: x.reshape(128), [((8, 16), "x", "y")]),
    "joined, the first cut": (lambda w, x: x.reshape(128), [((8, 16), "x")]),
    "taken apart": (lambda w, x: x.reshape(2, 4, 16), [((8, 16), "x")]),
    "a one in front": (lambda w, x: x.reshape(1, 8, 16), [((8, 16), "x")]),
    "beside what is taken apart": (lambda w, x: x.reshape(8, 4, 4), [((8, 16), "x")]),
    "raveled": (lambda w, x: w.np.ravel(x), [((8, 16), "x")]),
    "concatenated": (
        lambda w, x, y: w.np.concatenate([x, y]), [((8, 16), None, "y"), ((8, 16), None, "y")]
    ),
    "stacked": (lambda w, x, y: w.np.stack([x, y]), [((8, 16), "x"), ((8, 16), "x")]),
    "padded": (lambda w, x: w.np.pad(x, ((0, 0), (1, 1))), [((8, 16), "x")]),
    "sliced": (lambda w, x: x[:4], [((8, 16), "x")]),
    "sliced beside": (lambda w, x: x[:3], [((8, 16), None, "y")]),
    "a row": (lambda w, x: x[0], [((8, 16), None, "y")]),
    "reversed": (lambda w, x: x[::-1], [((8, 16), "x")]),
    "sorted": (lambda w, x: w.np.sort(x, axis=1), [((8, 16), "x")]),
    "cumulative": (lambda w, x: w.lax.cumsum(x, 1), [((8, 16), "x")]),
    "largest": (lambda w, x: w.lax.top_k(x, 2), [((8, 16), "x")]),
    "fft": (lambda w, x: abs(w.np.fft.fft(x)), [((8, 16), "x")]),
    "rows by number": (lambda w, x: x[w.np.array([1, 2])], [((8, 16), None, "y")]),
    "dynamic slice": (lambda w, x: w.lax.dynamic_index_in_dim(x, 1, 0), [((8, 16), None, "y")]),
    "product": (lambda w, x, y: x @ y, [((8, 16), "x"), ((16, 8), None, "y")]),
    "product, one is cut": (lambda w, x, y: x @ y, [((8, 16), None, "y"), ((16, 8),)]),
    "out_sharding": (
        lambda w, x, y: w.np.einsum("ij,jk->ik", x, y, out_sharding=w.P("x")),
        [((8, 16), None, "y"), ((16, 8), "y")],
    ),
    "auto_axes": (
        lambda w, x, y: w.auto(lambda a, b: a @ b, out_sharding=w.P(None, "x"))(x, y),
        [((8, 16), None, "y"), ((16, 8), "y")],
    ),
    "at": (lambda w, x: x.at[:, w.np.array([1, 3])].add(1.0), [((8, 16), "x")]),
    "get": (
        lambda w, x: x.at[w.np.array([1, 3])].get(out_sharding=w.P(None, "y")), [((8, 16), "x")]
    ),
    "where": (lambda w, x: w.np.where(x > 0, x, 0.0), [((8, 16), "x", "y")]),
    "tril": (lambda w, x: w.np.tril(x), [((8, 8), "x")]),
    "like": (lambda w, x: w.np.ones_like(x), [((8, 16), "x", "y")]),
    "broadcast": (lambda w, x: w.np.broadcast_to(x, (4, 8, 16)), [((8, 16), "x", "y")]),
    "outer": (lambda w, x, y: w.np.outer(x, y), [((8,), "x"), ((16,), "y")]),
    "softmax": (lambda w, x: w.nn.softmax(x), [((8, 16), "x", "y")]),
    "logsumexp": (lambda w, x: w.special.logsumexp(x, axis=1), [((8, 16), "x", "y")]),
    "reshard": (lambda w, x: w.reshard(x, w.P(None, "x")), [((8, 16), "x")]),
    "scan": (
        lambda w, x, y: w.lax.scan(lambda s, r: (s + r, s * r), y, x),
        [((8, 16), None, "y"), ((16,), "y")],
    ),
    "scan over weights": (
        lambda w, x, y: w.lax.scan(lambda s, r: (s @ r, s.sum()), x, y)[0],
        [((8, 16), "x"), ((3, 16, 16),)],
    ),
    "while": (
        lambda w, x: w.lax.fori_loop(0, 3, lambda i, s: w.np.sin(s), x), [((8, 16), "x")]
    ),
    "cond": (
        lambda w, x: w.lax.cond(x.sum() > 0, w.np.sin, lambda v: v + 1, x), [((8, 16), "x")]
    ),
    "vmap": (lambda w, x: w.m.vmap(lambda v: w.np.sin(v).sum())(x), [((8, 16), "x")]),
    "vmap of columns": (
        lambda w, x: w.m.vmap(lambda v: 2 * v, in_axes=1, out_axes=1)(x), [((8, 16), "x", "y")]
    ),
    "grad": (
        lambda w, x, y: w.m.grad(lambda y: (w.np.tanh(x @ y) ** 2).sum())(y),
        [((8, 16), "x"), ((16, 8), None, "y")],
    ),
    "grad of a whole weight": (
        lambda w, x, y: w.m.grad(lambda y: (w.np.tanh(x @ y) ** 2).sum())(y),
        [((8, 16), "x"), ((16, 8),)],
    ),
    "vmap of shard_map": (
        lambda w, x: w.m.vmap(
            w.m.shard_map(lambda v: w.lax.psum(v, "y"), in_specs=w.P("y"), out_specs=w.P())
        )(x),
        [((8, 16), "x", "y")],
    ),
    "vmap of a layout that is asked for": (
        lambda w, x: w.m.vmap(lambda v: w.reshard(v, w.P("y")))(x), [((8, 16), "x")]
    ),
    "vmap of gradients": (
        lambda w, x: w.m.vmap(w.m.grad(lambda v: w.np.cos(w.reshard(v, w.P("y"))).sum()))(x),
        [((8, 16), "x")],
    ),
    "vmap of what depends on no lane": (
        lambda w, x: w.m.vmap(lambda v: w.np.zeros(4), out_axes=-1)(x), [((8, 16), "x")]
    ),
    "vmap of rows that are to be cut": (
        lambda w, x, i: w.m.vmap(
            lambda v, k: v.at[w.np.int32(abs(k)) % 2].get(out_sharding=w.P("y"))
        )(x, i),
        [((8, 3, 16), "x"), ((8, 4), "x")],
    ),
    "vmap of a jitted product": (
        lambda w, x, y: w.m.vmap(
            w.m.jit(lambda v: w.np.einsum("i,ij->j", v, y, out_sharding=w.P("y")))
        )(x),
        [((8, 16), "x"), ((16, 8), None, "y")],
    ),
    "gradient of vmap of shard_map": (
        lambda w, x: w.m.grad(
            lambda x: w.m.vmap(
                w.m.shard_map(w.np.sin, in_specs=w.P("y"), out_specs=w.P("y"))
            )(x).sum()
        )(x),
        [((8, 16), "x", "y")],
    ),
    "remat": (
        lambda w, x: w.m.grad(lambda x: w.m.checkpoint(w.np.sin)(x).sum())(x), [((8, 16), "x")]
    ),
}  # fmt: skip

REFUSED = {
    "dimensions that disagree": (lambda w, x, y: x + y, [((8, 16), "x"), ((8, 16), "y")]),
    "an axis twice": (lambda w, x, y: x + y, [((8, 16), "x"), ((8, 16), None, "x")]),
    "summed over an axis": (lambda w, x, y: x @ y, [((8, 16), None, "y"), ((16, 8), "y")]),
    "twice in a product": (lambda w, x, y: x @ y, [((8, 16), "x"), ((16, 8), None, "x")]),
    "joined, the last cut": (lambda w, x: x.reshape(128), [((8, 16), None, "y")]),
    "no whole parts": (lambda w, x: x[:3], [((8, 16), "x")]),
    "sorted along it": (lambda w, x: w.np.sort(x, axis=0), [((8, 16), "x")]),
    "cumulative along it": (lambda w, x: w.lax.cumsum(x, 0), [((8, 16), "x")]),
    "vmap of shard_map over what cuts the lanes": (
        lambda w, x: w.m.vmap(
            w.m.shard_map(w.np.sin, in_specs=w.P("x"), out_specs=w.P("x"), axis_names={"x"})
        )(x),
        [((8, 16), "x")],
    ),
    "by number in it": (lambda w, x: x[w.np.array([1, 2])], [((8, 16), "x")]),
    "written by number": (lambda w, x: x.at[w.np.array([1, 2])].set(1.0), [((8, 16), "x")]),
}  # fmt: skip


def run(m, case, values):
    """The results under a mesh of Explicit axes, and the specs in their types and shardings."""
    function, operands = case
    kind = m.sharding.AxisType.Explicit
    mesh = m.make_mesh((2, 4), ("x", "y"), axis_types=(kind, kind))
    with m.set_mesh(mesh):
        pairs = zip(values, operands, strict=True)
        args = [m.device_put(v, m.sharding.PartitionSpec(*spec)) for v, (_, *spec) in pairs]
        out = m.tree.leaves(m.jit(lambda *xs: function(words(m), *xs))(*args))
        specs = [(tuple(m.typeof(x).sharding.spec), tuple(x.sharding.spec)) for x in out]
        # which part lies where, by the number of the device
        parts = [{d.id: i for d, i in x.sharding.devices_indices_map(x.shape).items()} for x in out]
        return [np.asarray(x) for x in out], specs, parts


def drawn(case):
    return [RNG.normal(size=shape).astype("f") for shape, *_ in case[1]]


@pytest.mark.parametrize("case", CASES)
def test_results_lie_as_those_of_jax(case):
    values = drawn(CASES[case])
    ours, wanted = run(phalanx, CASES[case], values), run(jax, CASES[case], values)
    assert ours[1:] == wanted[1:]
    for x, y in zip(ours[0], wanted[0], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_clear_is_refused_by_both(case):
    values = drawn(REFUSED[case])
    with pytest.raises(phalanx.errors.ShardingTypeError, match=r"test_explicit_axes\.py:\d+"):
        run(phalanx, REFUSED[case], values)
    with pytest.raises(Exception, match=r"shard|specify"):
        run(jax, REFUSED[case], values)


@pytest.mark.parametrize("m", [jax, phalanx], ids=["jax", "phalanx"])
def test_eager_gradients_lie_as_their_parameters(m):
    kind = m.sharding.AxisType.Explicit
    mesh = m.make_mesh((2, 4), ("x", "y"), axis_types=(kind, kind))
    with m.set_mesh(mesh):
        x = m.device_put(np.ones((8, 16), "f"), m.P("x", "y"))
        for spec in [m.P(None, None), m.P("y", None)]:
            w = m.device_put(np.ones((16, 4), "f"), spec)

            def loss(w, x):
                return (m.numpy.matmul(x, w, out_sharding=m.P("x")) ** 2).sum()

            assert m.grad(loss)(w, x).sharding == w.sharding
            assert m.vjp(loss, w, x)[1](np.float32(1))[0].sharding == w.sharding


@pytest.mark.parametrize(
    "function",
    [
        phalanx.numpy.zeros_like,
        phalanx.grad(lambda x: x.sum()),
        lambda x: 3 * phalanx.numpy.ones_like(x),
    ],
    ids=["zeros", "gradient", "product"],
)
def test_what_depends_on_no_argument_lies_as_its_type_says(function):
    """Without a mesh that is set the argument tells the devices, though it is not needed."""
    kind = phalanx.sharding.AxisType.Explicit
    mesh = phalanx.make_mesh((2, 4), ("x", "y"), axis_types=(kind, kind))
    home = phalanx.NamedSharding(mesh, phalanx.P("x", None))
    x = phalanx.device_put(np.ones((8, 16), "f"), home)
    assert phalanx.jit(function)(x).sharding == home
    assert phalanx.grad(lambda x: x.sum())(x).sharding == home


def over(m, kind, *values_and_specs):
    """A mesh of axes of one kind, and arrays that lie over it."""
    mesh = m.make_mesh((2, 4), ("x", "y"), axis_types=(kind,) * 2)
    return mesh, [m.device_put(v, m.NamedSharding(mesh, m.P(*s))) for v, s in values_and_specs]


@pytest.mark.parametrize("m", [jax, phalanx], ids=["jax", "phalanx"])
def test_a_part_with_explicit_axes_leaves_results_to_the_mesh_around_it(m):
    mesh, (x,) = over(m, m.sharding.AxisType.Auto, (np.ones((8, 16), "f"), ("x", "y")))
    sine = m.sharding.explicit_axes(m.numpy.sin, in_sharding=m.P("x", "y"))
    with m.set_mesh(mesh):
        for f in [sine, m.jit(sine)]:
            assert f(x).sharding == m.NamedSharding(mesh, m.P("x", "y"))


@pytest.mark.parametrize("m", [jax, phalanx], ids=["jax", "phalanx"])
def test_what_is_whole_at_the_end_is_told_as_arguments_tell_it(m):
    mesh, (x, z) = over(
        m,
        m.sharding.AxisType.Auto,
        (np.ones((8, 16), "f"), ("x", "y")),
        (np.ones((8, 16), "f"), ("x", None)),
    )
    rows, long = m.NamedSharding(mesh, m.P("x")), m.NamedSharding(mesh, m.P("x", None))
    lay = m.lax.with_sharding_constraint
    assert m.jit(lambda x: lay(x, long))(x).sharding == rows
    assert m.jit(lambda x: x, out_shardings=long)(x).sharding == lay(x, long).sharding == long
    assert m.jit(lambda z: z + 1)(z).sharding == long
    explicit = m.sharding.explicit_axes(m.numpy.sin, in_sharding=m.P("x", None))
    with m.set_mesh(mesh):
        assert m.jit(explicit)(x).sharding == rows


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("m", [phalanx] if OLDER else [jax, phalanx], ids=lambda m: m.__name__)
def test_keys_lie_as_their_words_without_the_last_dimension(m, kind):
    given = np.arange(16, dtype="u4").reshape(8, 2), ("x", None)
    mesh, (words,) = over(m, getattr(m.sharding.AxisType, kind), given)
    rows = m.NamedSharding(mesh, m.P("x"))
    keys = m.random.wrap_key_data(words)
    assert keys.sharding == rows and m.random.key_data(keys).sharding == words.sharding
    others = m.device_put(m.random.split(m.random.key(0), 8), keys.sharding)
    assert m.jit(lambda k: k, in_shardings=keys.sharding)(others).sharding == rows
    assert keys.addressable_shards[1].index[0] == slice(0, 4)


@pytest.mark.parametrize("m", [jax, phalanx], ids=["jax", "phalanx"])
def test_auto_axes_are_those_of_the_mesh_that_is_asked_for(m):
    mesh, (x,) = over(m, m.sharding.AxisType.Explicit, (np.ones((8, 16), "f"), ("x", "y")))
    asked = m.NamedSharding(mesh, m.P("x", None))
    square = m.sharding.auto_axes(lambda x: x @ x.T, out_sharding=asked)
    assert m.jit(square)(x).sharding == square(x).sharding == asked


@pytest.mark.parametrize("m", [jax, phalanx], ids=["jax", "phalanx"])
def test_what_a_function_closes_over_tells_names(m):
    mesh, (x,) = over(m, m.sharding.AxisType.Explicit, (np.ones((8, 16), "f"), (None, None)))
    with m.set_mesh(mesh):
        assert m.jit(lambda: x[:, :-1])().sharding == m.NamedSharding(mesh, m.P(None, None))


@pytest.mark.parametrize("m", [phalanx] if OLDER else [jax, phalanx], ids=lambda m: m.__name__)
def test_arrays_like_what_describes_one(m):
    mesh, _ = over(m, m.sharding.AxisType.Explicit)
    home = m.NamedSharding(mesh, m.P("x", None))
    there = m.NamedSharding(mesh.abstract_mesh, m.P("x", None))
    like = m.ShapeDtypeStruct((8, 16), np.float32, sharding=there)
    assert m.lax.full_like(like, 0).sharding.device_set == {m.devices()[0]}
    with m.set_mesh(mesh):
        for x in [m.numpy.ones_like(like), m.lax.full_like(like, 1.0)]:
            assert x.sharding == home and (x == 1).all()


@pytest.mark.parametrize("m", [jax, phalanx], ids=["jax", "phalanx"])
def test_meshes_without_devices_change(m):
    mesh, _ = over(m, m.sharding.AxisType.Explicit)
    flat = mesh.abstract_mesh.update(axis_sizes=(8, 1), axis_names=("a", "b"))
    assert flat.shape == {"a": 8, "b": 1} and flat.axis_types == mesh.axis_types
    with pytest.raises(ValueError, match=r"(?i)manual"):
        m.set_mesh(mesh.update(axis_types=(m.sharding.AxisType.Manual,) * 2))


@pytest.mark.parametrize("m", [jax, phalanx], ids=["jax", "phalanx"])
def test_what_is_compiled_tells_how_results_lie(m):
    mesh, (x,) = over(m, m.sharding.AxisType.Auto, (np.ones((8, 16), "f"), ("x",)))
    compiled = m.jit(lambda x: (2 * x, x.sum())).lower(x).compile()
    rows, total = compiled.out_info
    assert rows.sharding == m.NamedSharding(mesh, m.P("x"))
    assert total.sharding == m.NamedSharding(mesh, m.P())


def test_types_alone_may_be_compiled_for_any_layout():
    """The sharding of a type is over the mesh that is set, and asks for nothing along Auto axes."""
    mesh, (x,) = over(phalanx, phalanx.sharding.AxisType.Auto, (np.ones((8, 16), "f"), ("x",)))
    with phalanx.set_mesh(mesh):
        double = phalanx.jit(lambda x: 2 * x, in_shardings=phalanx.P("x"))
        assert (double.lower(phalanx.typeof(np.asarray(x))).compile()(x) == 2).all()
