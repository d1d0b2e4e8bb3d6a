"""``shard_map`` as users call it: meshes, specs, types inside, what is kept for later calls."""

import numpy as np
import pytest

import phalanx
import phalanx.nn
import phalanx.numpy as jnp
from phalanx import P, lax, typeof
from phalanx.errors import DevicesDiffer, ShardingTypeError, TracerBoolConversionError
from phalanx.experimental.shard_map import shard_map as older
from phalanx.sharding import ManualAxisType

pytestmark = pytest.mark.skipif(phalanx.device_count() < 4, reason="needs a mesh of 2 x 2")
X = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def mesh():
    return phalanx.make_mesh((2, 2), ("x", "y"))


ALONG_X = P("x")


def over(mesh, f, in_specs=ALONG_X, out_specs=ALONG_X, **options):
    return phalanx.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def twice(x):
    return 2 * x


# ---- meshes -------------------------------------------------------------------------------------


def test_ways_to_give_a_mesh(mesh):
    with phalanx.set_mesh(mesh):
        current = phalanx.shard_map(twice, in_specs=P("x"), out_specs=P("x"))
        found = [current(X), over(mesh.abstract_mesh, twice)(X)]
        found.append(phalanx.jit(current)(X))
    placed = phalanx.device_put(X, phalanx.NamedSharding(mesh, P("y")))
    found += [over(mesh.abstract_mesh, twice)(placed), older(twice, mesh, P("x"), P("x"))(X)]
    for y in found:
        np.testing.assert_array_equal(y, 2 * X)


def test_a_mesh_without_devices_is_over_those_of_the_arguments(mesh):
    there = phalanx.sharding.Mesh(mesh.devices[::-1, ::-1], ("a", "b"))
    placed = phalanx.device_put(X, phalanx.NamedSharding(there, P("b")))
    f = over(mesh.abstract_mesh, lambda x: x + lax.axis_index("x"))
    wanted = X + np.repeat([[0], [1]], len(X) // 2, 0)
    inside = phalanx.jit(lambda x: f(2 * x / 2))
    for g in (f, phalanx.jit(f), inside):
        y = g(placed)
        assert y.sharding == phalanx.NamedSharding(
            phalanx.sharding.Mesh(there.devices, ("x", "y")), P("x")
        )
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(g(X), wanted)
    with phalanx.disable_jit():
        np.testing.assert_array_equal(f(X), wanted)
    slope = phalanx.jit(phalanx.grad(lambda x: f(x * x).sum()))(placed)
    assert slope.devices() == placed.devices()
    np.testing.assert_array_equal(slope, 2 * X)


def test_results_lie_as_their_specs_say(mesh):
    y = over(mesh, twice, P(), P(("y", "x")))(X)
    assert y.sharding == phalanx.NamedSharding(mesh, P(("y", "x"))) and y.shape == (16, 2)
    np.testing.assert_array_equal(y, np.concatenate([2 * X] * 4))


def test_some_axes_are_left_to_the_compiler(mesh):
    def f(x):
        assert x.shape == (2, 2)
        with pytest.raises(NameError, match="unbound axis name: y"):
            lax.psum(x, "y")
        return lax.psum(x * x, "x")

    f = over(mesh, f, out_specs=P(), axis_names={"x"})
    placed = phalanx.device_put(X, phalanx.NamedSharding(mesh, P("x", "y")))
    for found in (f(X), phalanx.jit(f)(placed)):
        np.testing.assert_array_equal(found, (X * X).reshape(2, 2, 2).sum(0))
    older_f = older(lambda x: lax.psum(x, "x"), mesh, P("x"), P(), auto={"y"})
    np.testing.assert_array_equal(older_f(X), X.reshape(2, 2, 2).sum(0))


def test_its_mesh_is_the_one_that_is_meant_inside(mesh):
    def inner(x):
        assert phalanx.sharding.get_abstract_mesh().manual_axes == ("x", "y")
        return x + lax.axis_index("y")

    def f(x):
        seen = phalanx.sharding.get_abstract_mesh()
        assert seen.manual_axes == ("x",) and seen.auto_axes == ("y",)
        x = lax.with_sharding_constraint(2 * x, P(None, "y"))
        return over(seen, inner, P(None, "y"), P(None, "y"), axis_names={"y"})(x)

    found = phalanx.jit(over(mesh, f, axis_names={"x"}))(X)
    np.testing.assert_array_equal(found, 2 * X + np.arange(2))
    with phalanx.disable_jit():
        found = over(mesh, inner, P("x", "y"), P("x", "y"))(X)
    np.testing.assert_array_equal(found, X + np.arange(2))
    assert phalanx.sharding.get_abstract_mesh().empty
    with pytest.raises(TypeError, match=r"axis_names=\{'x'\}"):
        over(mesh, twice, axis_names="x")


def test_inside_another_it_takes_axes_that_are_left(mesh):
    def outer(w, x):
        def inner(w, x):
            assert typeof(x).vma == {"x", "y"} and typeof(w).vma == set()
            return lax.psum(jnp.sum((w * x) ** 2), ("x", "y"))

        return phalanx.shard_map(inner, in_specs=(P(), P("y")), out_specs=P())(w, x)

    f = over(mesh, outer, (P(), P("x")), P(), axis_names={"x"})
    assert float(f(2.0, X)) == 4 * np.sum(X**2)
    assert float(phalanx.grad(f)(2.0, X)) == 4 * np.sum(X**2)


def test_arguments_along_explicit_axes_tell_their_specs():
    mesh = phalanx.make_mesh((2, 2), ("x", "y"), (phalanx.sharding.AxisType.Explicit,) * 2)
    shapes = []

    def f(args):
        shapes.append([x.shape for x in args])
        return args[0] + lax.axis_index("x")

    def lying(*entries):
        return phalanx.device_put(X, phalanx.NamedSharding(mesh, P(*entries)))

    g = phalanx.shard_map(f, mesh=mesh, out_specs=P("x", "y"))
    added = np.repeat([0, 1], 2)[:, None]
    np.testing.assert_array_equal(g([lying("x", "y"), X, 1.0]), X + added)
    g([lying("y", "x"), lying(("x", "y")), 1.0])
    assert shapes == [[(2, 1), (4, 2), ()], [(2, 1), (1, 2), ()]]
    part = phalanx.shard_map(twice, mesh=mesh, out_specs=P("x"), axis_names={"x"})
    np.testing.assert_array_equal(part(lying("x", "y")), 2 * X)
    assert part.lower(lying(None, "x")).out_info.shape == (8, 1)
    with phalanx.disable_jit():
        np.testing.assert_array_equal(g([lying("x", "y")]), X + added)


def test_what_is_gathered_may_be_the_same_everywhere_to_types(mesh):
    axes, weights = ("x", "y"), np.arange(8, dtype=np.float32)

    def gathered(x):
        whole = lax.all_gather(x, axes, tiled=True, to="invarying")
        assert typeof(whole).vma == set()
        return whole

    def slopes(x):
        first = phalanx.grad(lambda x: (gathered(x) ** 3 * weights).sum())
        return first(x), phalanx.grad(lambda x: (gathered(first(x)) * weights).sum())(x)

    cut, x = P(axes), np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(over(mesh, gathered, cut, P())(x), x)
    first, second = over(mesh, slopes, cut, (cut, cut))(x)
    np.testing.assert_allclose(first, 3 * x**2 * weights, rtol=1e-6)
    np.testing.assert_allclose(second, 6 * x * weights**2, rtol=1e-6)
    outside = phalanx.grad(lambda x: (over(mesh, gathered, cut, P())(x) ** 2).sum())(x)
    np.testing.assert_array_equal(outside, 2 * x)
    untyped = over(
        mesh, lambda x: lax.all_gather(x, axes, to="invarying"), cut, P(), check_vma=False
    )
    np.testing.assert_array_equal(untyped(x).ravel(), x)


@pytest.mark.parametrize("check_vma", [True, False])
def test_examples_are_dealt_out_along_an_idle_axis(mesh, check_vma):
    def f(w, x):
        steps, _ = lax.scan(lambda c, r: (jnp.sin(c + r), None), w, x)
        slope = phalanx.grad(lambda w: lax.psum(jnp.sum(jnp.cos(w * x)), "y"))(w)
        return lax.ppermute(x, "y", [(0, 1)]) * w, lax.pmean(steps, "y") + slope, 2 * w

    def numbered(x):
        return x * lax.axis_index("i") + lax.psum(x, ("i", "y")) + lax.all_gather(x, "i")[1]

    def busy(x):
        return lax.psum(lax.pvary(x, "x"), "x")

    along_y = {"out_specs": (P("y"), P(), P()), "check_vma": check_vma}
    f = over(mesh, f, (P(), P("y")), **along_y)
    others = [over(mesh, g, P("y"), P("y"), check_vma=check_vma) for g in (numbered, busy)]

    def everything(w, xs, over_axis):
        options = {"spmd_axis_name": over_axis}
        found = phalanx.vmap(f, (None, 0), (1, 0, 0), **options)(w, xs)
        named = [phalanx.vmap(g, axis_name="i", **options)(xs) for g in others]
        return sum(jnp.sum(jnp.sin(y)) for y in (*found, *named)), (*found, *named)

    xs, w = np.linspace(0, 1, 6 * 4 * 2, dtype=np.float32).reshape(6, 4, 2), np.float32([0.2, 0.7])
    run = phalanx.jit(phalanx.grad(everything, (0, 1), has_aux=True), static_argnums=2)
    wanted, found = run(w, xs, None), run(w, xs, "x")
    for y, x in zip(phalanx.tree.leaves(found), phalanx.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6)
    specs = [y.sharding.spec for y in found[1]]
    assert specs == [P("y", "x"), P("x"), P(), P("x", "y"), P(None, "y")]
    with pytest.raises(ShardingTypeError, match=r"spmd_axis_name cannot .* along 'y' these"):
        phalanx.vmap(others[0], axis_name="i", spmd_axis_name="y")(xs)


def test_slopes_of_examples_are_dealt_out_along_an_idle_axis(mesh):
    def loss(w, x):
        def step(c, row):
            return c + jnp.sin(w @ row), None

        rows, _ = lax.scan(step, lax.pcast(0.0, "y", to="varying"), x)
        return lax.psum(rows, "y")

    f = over(mesh, loss, (P(), P("y")), P())
    w = np.linspace(0, 1, 6 * 2, dtype=np.float32).reshape(6, 2)
    along_x = {"in_axes": (0, None), "spmd_axis_name": "x"}
    slopes = phalanx.jit(phalanx.vmap(phalanx.grad(f), **along_x))
    curves = phalanx.jit(phalanx.vmap(phalanx.hessian(f), **along_x))
    angles = w @ X.T
    found = slopes(w, X)
    np.testing.assert_allclose(found, np.cos(angles) @ X, rtol=1e-4, atol=1e-5)
    bent = np.einsum("nr,ri,rj->nij", -np.sin(angles), X, X)
    np.testing.assert_allclose(curves(w, X), bent, rtol=1e-4, atol=1e-4)
    assert found.sharding.spec == curves(w, X).sharding.spec == P("x")


@pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 2 x 2")
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a"), ("c", "a")])
def test_examples_are_dealt_out_along_all_idle_axes(names):
    def exchanged(x):
        every, away = lax.all_gather(x, "i"), [(i, (i + 3) % 8) for i in range(8)]
        swapped = lax.all_to_all(every, "i", 0, 0)[3] + lax.psum_scatter(every, "i")
        return every.sum(0) * lax.axis_index("i") + lax.ppermute(x, "i", away) + swapped

    x, cut = np.linspace(0, 1, 16, dtype=np.float32).reshape(8, 2), P("c")
    f = phalanx.vmap(exchanged, axis_name="i")
    three = phalanx.make_mesh((2, 2, 2), ("a", "b", "c"))
    mapped = over(three, exchanged, P(), P()) if "c" in names else over(three, exchanged, cut, cut)
    g = phalanx.vmap(mapped, axis_name="i", spmd_axis_name=names)
    found = phalanx.jit(g)(x)
    assert found.sharding.spec[0] == names
    np.testing.assert_allclose(found, f(x), rtol=1e-5)
    alone = phalanx.make_mesh((1, 2, 4), ("a", "b", "c"))
    idle = over(alone, jnp.sin, P("c"), P("c"))
    made = phalanx.jit(phalanx.vmap(idle, spmd_axis_name=("a", "b")))(np.ones((4, 4), "f"))
    assert made.sharding.spec == P(("a", "b"), "c")
    slopes = [phalanx.grad(lambda x, h=h: jnp.sum(jnp.sin(h(x))))(x) for h in (f, phalanx.jit(g))]
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-4, atol=1e-5)


def test_what_is_like_a_value_varies_as_it_does(mesh):
    like = [jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 2, shape=3)]

    def f(x):
        for make in (*like, lambda x: lax.full_like(x, 2)):
            assert phalanx.typeof(make(x)).vma == {"y"}
        described = phalanx.eval_shape(jnp.sin, x)
        assert phalanx.typeof(lax.full_like(described, 1)).vma == {"y"}
        return x

    over(mesh, f, P("y"), P("y"))(np.ones(4, "f"))


# ---- arguments ----------------------------------------------------------------------------------


def test_arguments_without_a_spec_are_values_of_python(mesh):
    def f(x, how, y):
        return {"twice": 2 * x, "as it is": x}[how] + y

    f = over(mesh, f, (P("x"), None, None))
    np.testing.assert_array_equal(f(X, "twice", np.ones(2)), 2 * X + 1)
    np.testing.assert_array_equal(f(X, "as it is", 1), X + 1)
    listed = over(mesh, f.__wrapped__, [P("x"), None, P()])
    np.testing.assert_array_equal(listed(X, "twice", 1), 2 * X + 1)


def test_trees_with_arrays_in_them_need_no_spec(mesh):
    def f(params, x, options):
        return {"scale": x * params["w"], "shift": x + params["b"]}[options[0]]

    f = over(mesh, f, (None, P("x"), None))
    params = {"w": jnp.full(2, 2.0), "b": 1}
    for g in (f, lambda *args: phalanx.jit(lambda p, x: f(p, x, args[2]))(*args[:2])):
        np.testing.assert_array_equal(g(params, X, ["scale"]), 2 * X)
        np.testing.assert_array_equal(g(params, X, ["shift"]), X + 1)


def test_values_of_python_may_be_leaves_of_arguments(mesh):
    seen = []

    def f(options, x):
        seen.append(options["how"])
        return sum([x] * options["times"])

    specs = {"times": None, "how": None}, P("x")
    for times in (2, 2, 3):
        y = over(mesh, f, specs)({"times": times, "how": "summed"}, X)
        np.testing.assert_array_equal(y, times * X)
    assert seen == ["summed"] * 2
    with pytest.raises(ValueError, match="not evenly divisible"):
        over(mesh, f, specs)({"times": 2, "how": "summed"}, X[:3])


class Counter:
    count = 1


class Unhashable(Counter):
    def __hash__(self):
        raise RuntimeError("it may change")


class Elementwise(Counter):
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return np.array([True, False])


@pytest.mark.parametrize("kind", [Counter, Unhashable, Elementwise])
def test_an_object_that_may_change_is_another_in_each_call(mesh, kind):
    f, counter = over(mesh, lambda c, x: x + c.count, (None, P("x"))), kind()
    np.testing.assert_array_equal(f(counter, X), X + 1)
    counter.count = 2
    np.testing.assert_array_equal(f(counter, X), X + 2)


@pytest.mark.parametrize(
    "f", [jnp.multiply, jnp.dot, lambda x, w: lax.fori_loop(0, 2, lambda _, v: v + w, x)]
)
def test_without_auto_pcast_operands_vary_alike(mesh, f):
    def said(x, w):
        return f(x, lax.pcast(w, "x", to="varying"))

    specs, w = (P("x"), P()), jnp.ones((2, 2))
    with phalanx.auto_pcast(False), pytest.raises(ShardingTypeError, match=r"pcast\(x, \('x',\)"):
        over(mesh, f, specs)(X, w)
    for g in (said, lambda x, w: phalanx.grad(lambda x: said(x, w).sum())(x)):
        expected = over(mesh, g, specs)(X, w)
        with phalanx.auto_pcast(False):
            np.testing.assert_array_equal(over(mesh, g, specs)(X, w), expected)


def test_without_auto_pcast_what_has_no_derivative_needs_none(mesh):
    def f(x, i):
        return phalanx.nn.softmax(2 * x + jnp.ones(2))[i]

    with phalanx.auto_pcast(False):
        rows = over(mesh, f, (P("x"), P()))(X, np.array([1, 0]))
    np.testing.assert_allclose(rows, phalanx.nn.softmax(2 * X), rtol=1e-6)


def test_types_without_axes_of_length_1():
    mesh = phalanx.make_mesh((2, 1), ("x", "y"))

    def f(x):
        assert typeof(x).vma == {"x"}
        return lax.psum(x * x, "x")

    with phalanx.remove_size_one_mesh_axis_from_type():
        f = over(mesh, f, P("x", "y"), P())
        np.testing.assert_array_equal(f(X), X[:2] ** 2 + X[2:] ** 2)
        np.testing.assert_array_equal(phalanx.grad(lambda x: f(x).sum())(X), 2 * X)


def test_an_axis_for_lanes_that_specs_use_may_be_passed_over(mesh):
    f = over(mesh, lambda x, y: x + lax.psum(y, "x"), (P(), P("x")), P(), check_vma=False)
    lanes = phalanx.vmap(f, in_axes=(0, None), spmd_axis_name="x")
    with pytest.raises(ShardingTypeError, match="spmd_axis_name cannot appear"):
        lanes(np.ones((4, 2)), X[:, 0])
    with phalanx.config.override(disable_vmap_shmap_error=True):
        found = lanes(np.ones((4, 2), "f"), X[:, 0])
    np.testing.assert_array_equal(found, np.tile(1 + X[:2, 0] + X[2:, 0], (4, 1)))


def test_an_object_in_an_argument_is_what_it_was_when_it_was_compiled(mesh):
    counter = Counter()
    f = over(mesh, lambda pair, x: pair[1] + pair[0].count + x, ((None, P("x")), P("x")))
    compiled = f.lower((counter, X), X).compile()
    np.testing.assert_array_equal(compiled((counter, X), X), 2 * X + 1)
    assert compiled.input_formats[0][0][1].sharding == compiled.input_shardings[0][1]
    with pytest.raises(TypeError, match=r"compiled for arguments of .*Counter object"):
        compiled((Counter(), X), X)


def test_python_may_look_at_what_positions_agree_on(mesh):
    def sign(x):
        return x if lax.psum(x.sum(), ("x", "y")) < 0 else -x

    np.testing.assert_array_equal(over(mesh, sign)(X), -X)
    np.testing.assert_array_equal(over(mesh, sign)(-X), -X)
    for f in (over(mesh, lambda x: x if x.sum() < 0 else -x), phalanx.jit(over(mesh, sign))):
        with pytest.raises(TracerBoolConversionError, match="in shard_map"):
            f(X)


def test_it_is_traced_once_and_keeps_no_function_alive(mesh):
    traced = []

    def f(x):
        traced.append(x)
        return x

    f = over(mesh, f)
    for x in (X, jnp.array(X), X + 1):
        f(x)
    assert len(traced) == 1
    assert f.lower(X).compile()(X).shape == X.shape and len(traced) == 1
    assert f.eval_shape(phalanx.ShapeDtypeStruct((6, 1), "float32")).shape == (6, 1)


def test_values_can_be_looked_at_without_compiling(mesh):
    seen = []

    def f(w, x):
        seen.append(repr(x))
        return phalanx.grad(lambda w: jnp.sum((w * x) ** 2))(w), x * w

    f = over(mesh, f, (P(), P("x")), (P(), P("x")))
    expected = f(3.0, X)
    with phalanx.disable_jit():
        slope, y = f(3.0, X)
    assert "7." in seen[-1]
    for found, wanted in ((slope, expected[0]), (y, expected[1])):
        np.testing.assert_array_equal(found, wanted)
        assert found.sharding == wanted.sharding


# ---- types --------------------------------------------------------------------------------------


def test_types_know_along_which_axes_values_vary(mesh):
    def f(w, x):
        kinds = {
            "w": w, "x": x, "both": w * x, "sum": lax.psum(x, "x"), "largest": lax.pmax(x, "x"),
            "index": lax.axis_index("y"), "gathered": lax.all_gather(w, "y"),
            "cast": lax.pvary(x, ("x", "y")), "number": lax.psum(1, "x") * w,
            "sent": lax.ppermute(w, "y", [(0, 1)]), "rows": phalanx.vmap(lambda r: r * w[0])(x),
        }  # fmt: skip
        found.update({k: typeof(v).vma for k, v in kinds.items()})
        return lax.pcast(w, "x", to="varying")

    found = {}
    over(mesh, f, (P(), P("x")))(np.ones(2, np.float32), X)
    assert found == {
        "w": set(), "x": {"x"}, "both": {"x"}, "sum": set(), "largest": set(), "index": {"y"},
        "gathered": {"y"}, "cast": {"x", "y"}, "number": set(), "sent": {"y"}, "rows": {"x"},
    }  # fmt: skip
    found.clear()
    over(mesh, f, (P(), P("x")), check_vma=False)(np.ones(2, np.float32), X)
    assert set(map(frozenset, found.values())) == {frozenset()}


def test_what_is_carried_or_chosen_varies_where_it_does_at_any_time(mesh):
    def f(x):
        total, sums = lax.scan(lambda c, r: (c + r, 1.0), jnp.zeros(2), x)
        count = lax.fori_loop(0, 3, lambda i, c: c * i + lax.axis_index("y"), 0)
        n, _ = lax.while_loop(lambda s: s[1][0] < 3, lambda s: (s[0] + 1, s[1] + x[1]), (0, x[1]))
        one = lax.cond(x[0, 0] > 1, lambda: 1.0, lambda: 2.0)
        other = lax.cond(lax.psum(x[0, 0], "x") > 1, lambda: x[0, 0], lambda: 2.0)
        values = (total, sums, count, n, one, other)
        found.extend(typeof(v).vma for v in values)
        return tuple(lax.pvary(jnp.ravel(v)[:1], ("x", "y")) for v in values)

    found = []
    results = over(mesh, f, out_specs=P(("x", "y")))(X)
    assert found == [{"x"}, set(), {"y"}, {"x"}, {"x"}, {"x"}]
    assert [r.tolist() for r in results][4:] == [[2, 2, 1, 1], [0, 0, 4, 4]]


def test_gradients_inside_are_those_of_all_positions(mesh):
    """By what all positions have a gradient is summed, by what each has it is not."""

    def f(w, x):
        def loss(w, x):
            return jnp.sum(w * x)

        copies = lax.pvary(w, "x")
        return (
            phalanx.grad(loss)(w, x), phalanx.grad(loss)(copies, x)[None],
            phalanx.grad(lambda x: lax.psum(jnp.sum(x), "x"))(x),
            phalanx.grad(lambda w: lax.pmean(loss(w, x), "x"))(w),
        )  # fmt: skip

    out_specs = (P(), P("x"), P("x"), P())
    summed, own, of_sum, of_mean = over(mesh, f, (P(), P("x")), out_specs)(2.0, X)
    assert float(summed) == 28 and own.tolist() == [6, 22] and float(of_mean) == 14
    np.testing.assert_array_equal(of_sum, np.ones_like(X))
    *_, of_sum, of_mean = over(mesh, f, (P(), P("x")), out_specs, check_vma=False)(2.0, X)
    np.testing.assert_array_equal(of_sum, np.full_like(X, 2))


def test_sums_of_parts_are_made_of_as_few_elements_as_there_are(mesh):
    """A bias is added to many rows; what its gradient exchanges has the size of the bias."""

    def f(b, x):
        return phalanx.grad(lambda b: jnp.sum(jnp.sin(x + b)))(b)

    f = over(mesh, f, (P(), P("x")), P())
    program = f.trace(np.ones(2, np.float32), np.ones((64, 2), np.float32)).program
    sums = [e for e in program.walk() if e.prim.name == "psum"]
    assert [e.outputs[0].type.shape for e in sums] == [(2,)]


def test_shapes_with_axes_along_which_they_vary(mesh):
    kind = phalanx.ShapeDtypeStruct((2,), "float32", vma={"x"})
    along = ManualAxisType(varying={"x"})
    assert kind == phalanx.ShapeDtypeStruct((2,), "float32", manual_axis_type=along)
    assert kind.update(manual_axis_type=ManualAxisType()).vma == set()
    assert kind != phalanx.ShapeDtypeStruct((2,), "float32") and "x" in repr(kind)
    part = kind.update(manual_axis_type=ManualAxisType(unreduced={"x"}))
    assert not part.vma and "unreduced={'x'}" in repr(part) and part.update(vma={"x"}) == kind

    def f(x):
        assert phalanx.eval_shape(lambda v: v + 1, kind).vma == {"x"}
        assert phalanx.eval_shape(jnp.sum, x).vma == {"x"}
        twice = phalanx.eval_shape(lambda v: v + v, part)
        assert twice.manual_axis_type == part.manual_axis_type
        assert typeof(x).manual_axis_type == ManualAxisType(varying=["x"]) == kind.manual_axis_type
        return x

    over(mesh, f)(X)


def test_results_lie_as_the_specs_say_in_their_words():
    mesh = phalanx.make_mesh((4, 2), ("a", "b"))
    x = jnp.ones((8, 6))
    for spec in (P(), P(None), P("a"), P("a", None), P(None, "b"), P(("a", "b"), None)):
        f = phalanx.shard_map(lambda x: (2 * x, x), mesh=mesh, in_specs=spec, out_specs=spec)
        assert [y.sharding.spec for y in f(x)] == [spec, spec]
    f = phalanx.shard_map(lambda x: (x, x), mesh=mesh, in_specs=P(), out_specs=(P(None), None))
    assert [y.sharding.spec for y in f(x)] == [P(None), P()]


def test_values_know_along_which_axes_they_are_the_same(mesh):
    def f(x):
        assert x.mat == typeof(x).mat == ManualAxisType(varying={"x"})
        here = phalanx.sharding.get_abstract_mesh()
        assert x.mat.invarying(here) == {"y"} and lax.psum(x, "x").mat.invarying(here) == {"x", "y"}
        assert lax.pcast(x, "y", to="reduced").mat.invarying(here) == set()
        with pytest.raises(TypeError, match="must be a tuple or a str, got frozenset"):
            lax.pcast(x, x.mat.varying, to="varying")
        return x

    over(mesh, f)(X)
    assert typeof(X).mat.invarying(mesh) == set()


def test_what_a_value_is_along_axes_that_are_taken():
    kind = ManualAxisType(varying={"x"}, unreduced={"y"}, reduced=())
    assert (kind.varying, kind.unreduced, kind.reduced) == ({"x"}, {"y"}, set())
    assert str(kind) == "ManualAxisType(varying={'x'}, unreduced={'y'})"
    assert kind == ManualAxisType(unreduced=["y"], varying=["x"]) != ManualAxisType(varying={"x"})
    with pytest.raises(ValueError, match=r"has the axis 'x' twice; along an axis a value varies"):
        ManualAxisType(varying={"x"}, reduced={"x"})


def test_an_argument_on_other_devices_is_named():
    first, last = phalanx.devices()[0], phalanx.devices()[-1]
    if first is last:
        pytest.skip("there is one device")
    mesh = phalanx.make_mesh((1,), ("i",), devices=[first])
    f = phalanx.shard_map(lambda x, y: x + y, mesh=mesh, in_specs=(P(), P()), out_specs=P())
    with pytest.raises(DevicesDiffer, match=r"and y, f32\[2\], lies on"):
        f(1.0, phalanx.device_put(jnp.ones(2), last))
