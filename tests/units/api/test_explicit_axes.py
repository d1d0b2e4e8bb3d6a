"""Transformations of functions over meshes of Explicit axes: types, values, derivatives."""

import re

import numpy as np
import pytest

import phalanx
import phalanx.nn
import phalanx.numpy as jnp
from phalanx import P, lax, typeof
from phalanx.errors import NoMesh, ShardingTypeError
from phalanx.sharding import (
    AxisType,
    NamedSharding,
    auto_axes,
    explicit_axes,
    use_abstract_mesh,
)
from tests.over_mesh import mesh, over_a_mesh  # noqa: F401

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 4")
RNG = np.random.default_rng(0)


def placed(shape, *spec):
    return phalanx.device_put(RNG.normal(size=shape).astype("f"), P(*spec))


def spec(x):
    return typeof(x).sharding.spec


def attention(q, k, v):
    weights = phalanx.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k))
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def layer(x, up, down):
    return jnp.matmul(jnp.tanh(x @ up), down, out_sharding=P("x"))


HEADS = ((8, 4, 4, 2), "x", None, "y")
FUNCTIONS = {
    "attention": (attention, [HEADS, HEADS, HEADS]),
    "a layer": (layer, [((8, 6), "x"), ((6, 16), None, "y"), ((16, 6), "y")]),
    "scan": (
        lambda x, w: lax.scan(lambda s, w: (jnp.tanh(s @ w), s.sum(0)), x, w),
        [((8, 4), "x"), ((3, 4, 4),)],
    ),
    "a carry that starts as it becomes": (
        lambda x: lax.scan(lambda s, r: (s + jnp.sin(r) * s, s), jnp.ones_like(x[0]), x),
        [((8, 4), None, "y")],
    ),
    "vmap of scan": (
        phalanx.vmap(lambda v: lax.scan(lambda s, r: (s + r * s, s), jnp.float32(1), v)),
        [((8, 4), "x")],
    ),
    "checkpoint": (phalanx.checkpoint(lambda x: jnp.sort(jnp.sin(x), 1)), [((8, 4), "x")]),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda v: 2 * v, x), [((8, 4), "x")]),
    "reshape": (lambda x: jnp.sin(x.reshape(32)), [((8, 4), "x", "y")]),
    "reshard": (lambda x: phalanx.reshard(jnp.sin(x), P(None, "y")), [((8, 4), "x")]),
    "part of shard_map": (
        lambda x: phalanx.shard_map(
            jnp.sin, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
        )(x),
        [((8, 4), "x", "y")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_lie_as_what_they_are_of(name):
    f, given = FUNCTIONS[name]
    args = [placed(*operand) for operand in given]
    every = tuple(range(len(args)))

    def loss(*args):
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in phalanx.tree.leaves(f(*args)))

    with phalanx.set_mesh(mesh(AxisType.Auto)):
        alone = [jnp.array(np.asarray(x)) for x in args]
        wanted = f(*alone), phalanx.grad(loss, every)(*alone)
    made = phalanx.eval_shape(f, *args)
    for transform in (phalanx.jit, lambda f: f):
        out, grads = transform(f)(*args), transform(phalanx.grad(loss, every))(*args)
        for x, y in zip(*map(phalanx.tree.leaves, ((out, grads), wanted)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
        assert list(map(spec, grads)) == list(map(spec, args))
        assert phalanx.tree.map(spec, out) == phalanx.tree.map(lambda x: x.sharding.spec, made)


def test_the_transpose_of_a_function_lies_as_its_example():
    x, w = placed((8, 16), "x", "y"), placed((16, 8), "y")
    y = jnp.matmul(x, w, out_sharding=P("x"))

    def back(example, ct):
        f = lambda x: jnp.matmul(x, w, out_sharding=P("x"))  # noqa: E731
        return phalanx.linear_transpose(f, example)(ct)[0]

    for found in (back(x, y), phalanx.jit(back)(x, y), back(phalanx.ShapeDtypeStruct.like(x), y)):
        assert spec(found) == P("x", "y")
        np.testing.assert_allclose(found, np.asarray(y) @ np.asarray(w).T, rtol=1e-5)


def test_types_follow_inside_jit():
    seen = []

    @phalanx.jit
    def f(x):
        seen.append(typeof(x))
        return phalanx.vmap(lambda row: seen.append(typeof(row)) or row.sum())(x)

    assert str(typeof(f(placed((8, 4), "x", "y")))) == "f32[8@x]"
    assert list(map(str, seen)) == ["f32[8@x,4@y]", "f32[4@y]"]


def test_arrays_that_nobody_placed_are_whole():
    assert spec(jnp.ones((2, 3))) == P(None, None)
    assert str(typeof(jnp.ones((8, 4)) + placed((8, 4), "x"))) == "f32[8@x,4]"


def test_along_auto_axes_types_say_nothing():
    mixed = phalanx.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    with phalanx.set_mesh(mixed):
        x, w = placed((8, 4), "x", "y"), placed((4, 8), None, "y")
        assert str(typeof(x)) == "f32[8@x,4]" and str(typeof(w)) == "f32[4,8]"
        y = phalanx.jit(jnp.matmul)(x, w)
        assert spec(y) == P("x", None)
        np.testing.assert_allclose(y, np.asarray(x) @ np.asarray(w), rtol=1e-5)


def test_auto_axes_are_left_to_the_compiler():
    def f(x, y):
        assert phalanx.sharding.get_abstract_mesh().are_all_axes_auto
        assert spec(x) == P(None, None)
        return x @ y

    x, y = placed((8, 16), None, "y"), placed((16, 8), "y")
    product = auto_axes(f, out_sharding=P("x"))
    for f in (product, phalanx.jit(product)):
        assert spec(f(x, y)) == P("x", None)
        np.testing.assert_allclose(f(x, y), np.asarray(x) @ np.asarray(y), rtol=1e-4)
    assert spec(product(x, y, out_sharding=P(None, "y"))) == P(None, "y")


def test_explicit_axes_inside_of_auto_ones():
    seen = []
    f = explicit_axes(lambda x: seen.append(spec(x)) or 2 * x, in_sharding=P("x"))
    with phalanx.set_mesh(mesh(AxisType.Auto)):
        y = phalanx.jit(f)(jnp.ones((8, 4)))
        assert seen == [P("x", None)] and spec(y) == P(None, None)


@pytest.mark.parametrize("change", [auto_axes, explicit_axes])
def test_they_need_a_mesh_a_name_and_a_layout(change):
    with pytest.raises(ValueError, match="nothing says how"):
        change(jnp.sin)(jnp.ones(8))
    option = "out_sharding" if change is auto_axes else "in_sharding"
    with pytest.raises(ValueError, match="'z', which is no axis of"):
        change(jnp.sin, axes="z", **{option: P()})(jnp.ones(8))
    with phalanx.set_mesh(None), pytest.raises(NoMesh, match="no mesh is set"):
        change(jnp.sin, **{option: P()})(jnp.ones(8))


def test_what_pmap_gives_has_the_type_of_jit():
    with phalanx.set_mesh(None):
        f = phalanx.pmap(lambda x: 2 * x, axis_name="x", mesh=mesh())
        x = jnp.ones((8, 3))
        assert spec(f(x)) == P("x", None)
        assert str(typeof(f(x))) == str(typeof(phalanx.jit(f)(x))) == "f32[8@x,3]"
        cut = phalanx.device_put(x, NamedSharding(mesh(), P("x")))
        assert typeof(phalanx.jit(phalanx.vmap(lambda x: 2 * x))(cut)) is typeof(f(x))
        assert typeof(f(jnp.ones((7, 3)))).spec is None  # the last part is shorter


def test_what_types_tell_is_what_shard_map_takes():
    f = phalanx.jit(phalanx.shard_map(lambda x: lax.psum(x, "x"), out_specs=P(None, "y")))
    x = placed((8, 4), "x", "y")
    np.testing.assert_allclose(f(x), np.asarray(x).reshape(2, 4, 4).sum(0), rtol=1e-5)


def test_shapes_without_data_say_how_they_lie():
    x = phalanx.ShapeDtypeStruct((8, 4), "float32", sharding=P("x", "y"))
    assert str(phalanx.typeof(x)) == "f32[8@x,4@y]"
    traced = phalanx.jit(lambda x: x.sum(0)).trace(x)
    compiled = traced.lower().compile()
    for told in (phalanx.eval_shape(lambda x: x.sum(0), x), traced.out_info, compiled.out_info):
        assert told.sharding.spec == P("y")
    ((given,), _) = compiled.in_avals
    assert given.sharding.spec == P("x", "y")


def carry_that_changes(x):
    return lax.fori_loop(0, 3, lambda i, s: phalanx.reshard(s, P(None, "x")), x)


def carry_that_is_whole_at_first(x):
    return lax.scan(lambda s, r: (s + r, s), jnp.zeros(4), phalanx.reshard(x, P(None, "y")))


def branches_that_differ(x):
    return lax.cond(True, lambda: x, lambda: phalanx.reshard(x, P()))


@pytest.mark.parametrize("f, words", [
    (carry_that_changes, r"f32\[8@x,4@y\].*f32\[8,4@x\].*reshard\(x, P\(None, 'x'\)\)"),
    (carry_that_is_whole_at_first, r"f32\[4\] and.*f32\[4@y\].*reshard\(x, P\('y'\)\)"),
    (branches_that_differ, r"f32\[8,4\].*f32\[8@x,4@y\].*reshard"),
])  # fmt: skip
def test_what_changes_on_the_way_is_refused(f, words):
    with pytest.raises(TypeError, match=words):
        phalanx.jit(f)(placed((8, 4), "x", "y"))


@pytest.mark.parametrize("loop", [
    lambda x: lax.scan(lambda s, r: (s + r, None), jnp.zeros(4, out_sharding=P("y")), x),
    lambda x: lax.map(jnp.sin, x),
    lambda x: lax.map(jnp.sin, x, batch_size=2),
])  # fmt: skip
def test_rows_that_devices_have_are_not_taken_one_by_one(loop):
    with pytest.raises(ShardingTypeError, match=r"dimension 0 of f32\[8@x,4@y\] is cut by 'x'"):
        phalanx.jit(loop)(placed((8, 4), "x", "y"))


def test_a_block_may_leave_axes_to_the_compiler():
    def f(x):
        auto = dict.fromkeys("xy", AxisType.Auto)
        with use_abstract_mesh(phalanx.sharding.get_abstract_mesh().update_axis_types(auto)):
            y = phalanx.reshard(x, P(None, "y"))
            assert typeof(y).spec is None
            y = y @ y.T
        assert spec(y) == P(None, None)
        return phalanx.reshard(y, P("x"))

    x = placed((8, 4), "x", "y")
    for g in (f, phalanx.jit(f)):
        assert spec(g(x)) == P("x", None)
        np.testing.assert_allclose(g(x), np.asarray(x) @ np.asarray(x).T, rtol=1e-5, atol=1e-6)


def test_references_say_how_what_they_hold_lies():
    def count(ref):
        ref[...] += lax.axis_index("x")
        assert ref.shape == (2,)

    ref = phalanx.new_ref(jnp.zeros(4, out_sharding=P("x")))
    assert str(typeof(ref)) == "Ref{f32[4@x]}"
    f = phalanx.shard_map(count, out_specs=None, axis_names={"x"})
    f(ref)
    phalanx.jit(f)(ref)
    np.testing.assert_array_equal(ref[...], [0, 0, 2, 2])
    phalanx.jit(lambda ref: typeof(ref[...]).layout == (("x",),) or 1 / 0)(ref)


def test_lanes_lie_alike():
    with pytest.raises(ShardingTypeError, match=r"as P\('x'\).*as P\('y'\)"):
        phalanx.vmap(jnp.add)(placed((8, 4), "x"), placed((8, 4), "y"))
    with pytest.raises(ShardingTypeError, match=r"over \('y',\).*cut as P\('x'\)"):
        phalanx.vmap(jnp.sin, spmd_axis_name="y")(placed((8, 4), "x"))
    assert spec(phalanx.vmap(jnp.sin, spmd_axis_name="x")(placed((8, 4), "x"))) == P("x", None)


def test_arrays_over_a_mesh_that_is_not_set():
    x = phalanx.device_put(np.ones((8, 4), "f"), NamedSharding(mesh(), P("x")))
    with phalanx.set_mesh(None):
        assert str(typeof(phalanx.grad(lambda x: (x.sum(1) ** 2).sum())(x))) == "f32[8@x,4]"
        assert typeof(x).sharding.mesh == mesh().abstract_mesh


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_arguments_that_are_passed_through_lie_and_are_named_as_they_were(kind):
    by_rows = NamedSharding(phalanx.make_mesh((8,), ("a",), (AxisType.Auto,)), P("a"))
    others = NamedSharding(phalanx.make_mesh((2, 4), ("b", "c"), (kind, kind)), P(("b", "c"), None))
    x, y = (phalanx.device_put(np.ones((8, 8), "f"), s) for s in (by_rows, others))
    _, *same = phalanx.jit(lambda x, y: (x + 1, x, y))(x, y)
    assert [r.sharding for r in same] == [x.sharding, y.sharding]


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4)])
def test_axes_of_one_position_are_told_as_others(sizes):
    kind = AxisType.Explicit
    with phalanx.set_mesh(phalanx.make_mesh(sizes, ("x", "y"), (kind, kind))):
        x = placed((8, 4), "x", "y")
        for f in (lambda x: x.T, phalanx.jit(lambda x: x.T)):
            assert spec(f(x)) == P("y", "x")
        assert spec(x.sum(0)) == P("y")


def test_a_function_without_arguments_needs_no_word_of_how_they_lie():
    @phalanx.sharding.explicit_axes
    def made():
        return phalanx.reshard(jnp.ones(2), P("a"))

    with phalanx.set_mesh(phalanx.make_mesh((1,), ("a",))):
        assert made(in_sharding=None).tolist() == [1, 1]
        with pytest.raises(ValueError, match="nothing says how the arguments lie"):
            phalanx.sharding.explicit_axes(lambda x: x)(jnp.ones(2))


@pytest.mark.parametrize("name", ["gamma", "poisson", "beta", "binomial"])
def test_draws_by_rejection_lie_as_what_they_are_drawn_for(name):
    values = RNG.uniform(0.5, 20, size=(8, 4)).astype("f")
    draw, key = getattr(phalanx.random, name), phalanx.random.key(1)

    def drawn(a):
        return draw(key, a, a) if name == "beta" else draw(key, a, *[0.3] * (name == "binomial"))

    cut = phalanx.jit(drawn)(phalanx.device_put(values, P("x", "y")))
    assert spec(cut) == P("x", "y")
    np.testing.assert_allclose(cut, drawn(values), rtol=1e-5)


def test_draws_by_many_keys_lie_as_the_keys():
    def drawn(seeds):
        return phalanx.vmap(lambda s: phalanx.random.normal(phalanx.random.key(s), (3,)))(seeds)

    seeds = np.arange(8)
    cut = phalanx.jit(drawn)(phalanx.device_put(seeds, P("x")))
    assert spec(cut) == cut.sharding.spec == P("x", None)
    np.testing.assert_array_equal(cut, drawn(seeds))


def test_right_sides_of_solvers_are_each_for_itself():
    a, b = RNG.normal(size=(4, 4)).astype("f") + 4 * np.eye(4, dtype="f"), RNG.normal(size=(4, 8))
    sides = phalanx.device_put(b.astype("f"), P(None, "x"))
    bands = [phalanx.device_put(np.diagonal(a), P())] * 3
    for solved in (
        phalanx.jit(jnp.linalg.solve)(a, sides),
        lax.linalg.triangular_solve(a, sides.T, left_side=False, lower=True).T,
        lax.linalg.tridiagonal_solve(*bands, sides),
    ):
        assert spec(solved) == P(None, "x")
    np.testing.assert_allclose(jnp.linalg.solve(a, sides), np.linalg.solve(a, b), rtol=1e-4)
    many = phalanx.device_put(np.ones((8, 4), "f"), P("y"))
    x = lax.linalg.tridiagonal_solve(many, 4 * many, many, many[..., None])
    assert spec(x) == P("y", None, None)


def test_rows_in_groups_stay_as_they_lie():
    rows, experts = (RNG.normal(size=shape).astype("f") for shape in ((8, 4), (2, 4, 8)))
    sizes = np.array([3, 5], np.int32)
    x, w = phalanx.device_put(rows, P("x")), phalanx.device_put(experts, P(None, None, "y"))
    found = phalanx.jit(lax.ragged_dot)(x, w, sizes)
    assert spec(found) == P("x", "y")
    np.testing.assert_allclose(found, lax.ragged_dot(rows, experts, sizes), rtol=1e-4, atol=1e-5)
    apart = phalanx.device_put(experts, P("x"))
    with pytest.raises(ShardingTypeError, match="each row may be of any group"):
        lax.ragged_dot(rows, apart, sizes)
    assert spec(lax.ragged_dot(rows, apart, sizes, out_sharding=P("x"))) == P("x", None)


@pytest.mark.parametrize("kind", [AxisType.Explicit, AxisType.Auto])
@pytest.mark.parametrize("config", [((-1, 2, 1), (1, -2, 0)), ((0, -2, 2), (0, 0, 1))])
def test_what_is_cut_is_padded_and_cropped_at_once(kind, config):
    x = np.arange(32.0, dtype="f").reshape(8, 4)
    alone = lax.pad(x, 7.0, config)
    with phalanx.set_mesh(phalanx.make_mesh((2, 2), ("x", "y"), (kind, kind))):
        cut = phalanx.device_put(x, P("x"))
        padded = phalanx.jit(lambda x: lax.pad(x, 7.0, config))(cut)
    assert np.array_equal(padded, alone)


PARTS = {
    "a row": (lambda x: x[3], "f32[8@x]"),
    "a row of length one": (lambda x: x[-1:], "f32[1,8@x]"),
    "an element": (lambda x: x[3, 5], "f32[]"),
    "half of the rows": (lambda x: x[2:6], "f32[4@y,8@x]"),
    "every other row": (lambda x: x[::2], "f32[4@y,8@x]"),
    "rows one by one": (lambda x: sum(x), "f32[8@x]"),
    "rows rolled": (lambda x: jnp.roll(x, 3, 0), "f32[8@y,8@x]"),
    "a number that is traced": (lambda x: x[jnp.argmax(x[:, 0])], "f32[8@x]"),
    "rows that axes do not divide": (lambda x: x[1:4], "x[...], in dynamic_slice"),
}


@pytest.mark.parametrize("name", PARTS)
def test_what_is_read_of_an_array_lies_inside_and_outside_of_programs_alike(name):
    f, said = PARTS[name]
    x = placed((8, 8), "y", "x")
    host = np.asarray(x)
    if said.startswith("x[...]"):
        for g in (f, phalanx.jit(f)):
            with pytest.raises(ShardingTypeError, match=re.escape(said)):
                g(x)
        return
    for g in (f, phalanx.jit(f)):
        assert str(typeof(g(x))) == said
        np.testing.assert_allclose(g(x), f(host), rtol=1e-5)
    slope = phalanx.grad(lambda x: jnp.sum(f(x) ** 2))(x)
    assert slope.sharding == x.sharding
    np.testing.assert_allclose(slope, phalanx.grad(lambda x: jnp.sum(f(x) ** 2))(host), rtol=1e-5)


def test_sums_over_a_dimension_that_is_cut():
    x, w = placed((8, 4), "y"), RNG.normal(size=8).astype("f")
    host = np.asarray(x)
    means = (host[1:] + host[:-1]) / 2
    np.testing.assert_allclose(jnp.trapezoid(x, axis=0), means.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jnp.correlate(x[:, 0], w), host[:, :1].T @ w, rtol=1e-5)


def test_a_row_is_a_carry():
    x, v = placed((8, 8), "y", "x"), placed((8,), "x")
    rows = phalanx.reshard(x, P(None, "x"))
    total, _ = lax.scan(lambda c, r: (c + r, None), jnp.zeros_like(x[0]), rows)
    np.testing.assert_allclose(total + x[0] - v, np.asarray(x).sum(0) + x[0] - v, rtol=1e-5)


def test_messages_name_what_the_user_called():
    x = placed((8,), "x")
    for call, words in (
        (lambda: jnp.nonzero(x, size=8), "nonzero, in cumsum: how the result"),
        (lambda: phalanx.jit(jnp.diff)(x), "diff, in slice: how the result"),
        (lambda: jnp.sort(x), "sort: how the result"),
        (lambda: jnp.zeros(7, out_sharding=P("x")), r"zeros: f32\[7\] cannot lie as asked"),
        (lambda: phalanx.reshard(jnp.ones(7), P("x")), r"reshard: f32\[7\] cannot lie as asked"),
    ):
        with pytest.raises(ValueError, match=f"^{words}"):
            call()


def test_initializers_take_out_sharding_by_position_as_jax_has_it():
    for init in (phalanx.nn.initializers.zeros, phalanx.nn.initializers.he_normal()):
        made = init(phalanx.random.key(0), (8, 4), "float32", P("x"))
        assert str(typeof(made)) == "f32[8@x,4]"
        by_name = init(phalanx.random.key(0), (8, 4), out_sharding=P("x"))
        np.testing.assert_array_equal(made, by_name)


def test_a_result_without_elements_lies_as_its_type_says():
    x = placed((8, 4), "x")
    y = phalanx.jit(lambda x: x[2:2] + 1)(x)
    assert y.shape == (0, 4) and spec(y) == spec(x)
    assert phalanx.jit(lambda y: y * 2)(y).shape == (0, 4)
