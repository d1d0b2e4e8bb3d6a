"""Functions of blocks on sums over devices that are still to be taken."""

import itertools
from contextlib import nullcontext

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, reshard, shard_map, typeof
from phalanx.errors import MeshesDiffer, ReplicationError, ShardingTypeError, UnreducedError
from phalanx.sharding import AxisType
from phalanx.xla.jaxlib_versions import SUMS_IN_REGIONS
from tests.over_mesh import mesh, over_a_mesh  # noqa: F401

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 4")
X = np.arange(64.0, dtype="f").reshape(8, 8) / 64
TOTAL = X.reshape(4, 2, 8).sum(0)
LEFT, HAS = P(unreduced={"y"}), P(reduced={"y"})


def left(rows):
    """The sum over `y`, still to be taken, of the rows that its positions have."""
    return lax.pcast(rows, "y", to="unreduced")


def of_rows(x=X):
    """An array that is such a sum."""
    return shard_map(left, in_specs=P("y"), out_specs=LEFT)(x)


def where_compiled():
    """The body is run by versions of jaxlib that compile sums along axes that are left, and ends in
    words with those that do not."""
    if SUMS_IN_REGIONS:
        return nullcontext()
    words = r"a sum along '\w' .* over '\w', at test_sums.*jaxlib compiles from 0\.12 on.*reshard"
    return pytest.raises(UnreducedError, match=words)


def told(f, *args, **specs):
    """The types of what ``f`` sees inside."""
    types = []

    def watched(*blocks):
        types.extend(map(typeof, blocks))
        return f(*blocks)

    shard_map(watched, **specs)(*args)
    return types


def test_each_position_has_a_part_and_its_type_says_so():
    (kind,) = told(lambda u: u, of_rows(), in_specs=LEFT, out_specs=LEFT)
    assert str(kind) == "f32[2,8]{U:y}" and kind.unreduced and not kind.vma
    assert kind.mat.unreduced == {"y"} and not kind.mat.reduced
    assert kind.sharding.spec == P(None, None)
    (kind,) = told(lambda x: x, reshard(X, HAS), in_specs=HAS, out_specs=HAS)
    assert str(kind) == "f32[8,8]{R:y}" and kind.manual_axis_type.reduced == {"y"}
    (kind,) = told(
        lambda u: u, reshard(of_rows(), P("x", unreduced={"y"})),
        in_specs=P("x", unreduced={"y"}), out_specs=P("x", unreduced={"y"}),
    )  # fmt: skip
    assert str(kind) == "f32[1,8]{x}{U:y}"


def test_along_auto_axes_they_stay_inside():
    with phalanx.set_mesh(mesh(AxisType.Auto)):
        total = shard_map(lambda x: lax.psum(2 * left(x), "y"), in_specs=P("y"), out_specs=P())
        np.testing.assert_allclose(total(X), 2 * TOTAL, rtol=1e-6)

        def loss(w, x):
            w = lax.pcast(w, "y", to="reduced")
            return lax.psum(jnp.sum(jnp.sin(x @ w)), "y")

        on_all = shard_map(loss, in_specs=(P(), P("y")), out_specs=P())
        slopes = phalanx.grad(on_all, (0, 1))(X, X)
        for x, y in zip(
            slopes, phalanx.grad(lambda w, x: jnp.sum(jnp.sin(x @ w)), (0, 1))(X, X), strict=True
        ):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match=r"not Explicit\. Make the mesh with axis_types"):
            shard_map(left, in_specs=P("y"), out_specs=LEFT)(X)


def test_gradients_outside_of_jit_pass_sums_that_are_left():
    def total(x):
        return (weights * shard_map(left, in_specs=P("y"), out_specs=LEFT)(x)).sum()

    weights = phalanx.device_put(X[:2], HAS)
    np.testing.assert_array_equal(phalanx.grad(total)(X), np.tile(X[:2], (4, 1)))


def test_they_keep_what_they_are_through_loops_and_branches():
    u, want = of_rows(), TOTAL

    def run(f):
        return reshard(shard_map(f, in_specs=LEFT, out_specs=LEFT)(u), P())

    np.testing.assert_allclose(run(lambda u: lax.fori_loop(0, 3, lambda i, c: c + u, u)), 4 * want)
    np.testing.assert_allclose(
        run(lambda u: lax.scan(lambda c, r: (c, 2 * r), 0.0, u)[1]), 2 * want
    )
    chosen = lambda u: lax.cond(lax.psum(u.sum(), "y") > 0, lambda u: u + u, jnp.negative, u)  # noqa: E731
    np.testing.assert_allclose(run(chosen), 2 * want)
    np.testing.assert_allclose(run(lambda u: phalanx.vmap(lambda r: r * 3)(u)), 3 * want)
    again = phalanx.jit(lambda u: phalanx.checkpoint(lambda u: -u)(u))
    np.testing.assert_allclose(run(again), -want)


def test_what_is_carried_may_begin_as_what_is_reduced():
    def f(w, x):
        return lax.scan(lambda c, _: (c * x, None), w, None, length=2)[0]

    rows = shard_map(f, in_specs=(HAS, P("y")), out_specs=P("y"))(reshard(X[:2], HAS), X)
    np.testing.assert_allclose(rows, np.tile(X[:2], (4, 1)) * X**2, rtol=1e-6)


def test_one_device_has_one_part():
    with phalanx.set_mesh(phalanx.make_mesh((1, 1), ("x", "y"), (AxisType.Explicit,) * 2)):
        u = of_rows()
        total = shard_map(lambda u: lax.psum(u, "y"), in_specs=LEFT, out_specs=P())(u)
        np.testing.assert_allclose(total, X)


def test_trees_and_numbers():
    u = of_rows()
    f = lambda x: lax.psum({"a": x["a"], "b": x["b"], "c": 1}, "y")  # noqa: E731
    made = shard_map(f, in_specs=({"a": LEFT, "b": P()},), out_specs=P())({"a": u, "b": X})
    np.testing.assert_allclose(made["a"], TOTAL)
    np.testing.assert_allclose(made["b"], 4 * X)
    assert made["c"] == 4


def test_axes_that_are_left_hold_sums_too():
    """Along axes that the function does not take, types go on telling."""
    u = reshard(of_rows(), P("x", unreduced={"y"}))
    some = {"in_specs": P("x"), "axis_names": {"x"}}
    for f, out, want in [
        (lambda u: reshard(u, P()), P("x"), TOTAL),
        (lambda u: lax.psum(u, "x"), P(), TOTAL[:1] + TOTAL[1:]),
        (lambda u: reshard(lax.psum(u, "x"), P()), P(), TOTAL[:1] + TOTAL[1:]),
        (lambda u: lax.all_gather(u, "x", tiled=True, to="invarying"), P(), TOTAL),
        (lambda u: lax.ppermute(u, "x", [(0, 1), (1, 0)]), P("x"), TOTAL[::-1]),
        (lambda u: lax.psum_scatter(u, "x", scatter_dimension=1, tiled=True), P(None, "x"),
         TOTAL[:1] + TOTAL[1:]),
    ]:  # fmt: skip
        with where_compiled():
            y = phalanx.jit(shard_map(f, out_specs=out, **some))(u)
            np.testing.assert_allclose(reshard(y, P()), want, rtol=1e-6)
    with pytest.raises(ShardingTypeError, match=r"pmax: .* cannot be done to its parts.*reshard"):
        shard_map(lambda u: lax.pmax(u, "x"), out_specs=P(), **some)(u)
    with where_compiled():
        whole = shard_map(lambda x: reshard(x, LEFT), out_specs=P("x"), **some)(X)
        assert str(typeof(whole)) == "f32[8@x,8]{U:y}"
        np.testing.assert_allclose(reshard(whole, P()), X)
    with where_compiled():
        inside = lambda x: reshard(reshard(x, LEFT), P())  # noqa: E731
        whole = shard_map(inside, out_specs=P("x"), **some)(X)
        np.testing.assert_allclose(whole, X)


def test_what_moves_along_an_axis_lies_as_before_along_the_others():
    x = phalanx.device_put(X, P("x", "y"))
    types = []

    def f(x):
        for y in [
            x, lax.psum(x, "x"), lax.all_gather(x, "x"), lax.ppermute(x, "x", [(0, 1)]),
            lax.all_to_all(x, "x", 0, 0, tiled=True), lax.psum_scatter(x, "x", tiled=True),
            lax.pmax(x, "x"),
        ]:  # fmt: skip
            types.append(str(typeof(y)))
        return x

    shard_map(f, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x)
    assert types == [
        "f32[4,8@y]{x}", "f32[4,8@y]", "f32[2,4,8@y]{x}", "f32[4,8@y]{x}", "f32[4,8@y]{x}",
        "f32[2,8@y]{x}", "f32[4,8@y]",
    ]  # fmt: skip
    for tiled in (True, False):
        with pytest.raises(ShardingTypeError, match=r"by 'y', whose size|its rows are exchanged"):
            shard_map(
                lambda x, tiled=tiled: lax.psum_scatter(
                    x[:, :2], "x", scatter_dimension=1, tiled=tiled
                ),
                in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
            )(phalanx.device_put(X, P("x", "y")))  # fmt: skip


def test_moving_a_sum_keeps_the_parts_of_all_devices():
    u = of_rows()
    for spec in (P("x", unreduced={"y"}), P(None, "x", unreduced={"y"})):
        moved = reshard(u, spec)
        assert typeof(moved).sharding.spec.unreduced == {"y"}
        np.testing.assert_allclose(reshard(moved, P()), TOTAL, rtol=1e-6)


@pytest.mark.parametrize("inside", [True, False])
def test_without_compiling(inside):
    u, has = of_rows(), reshard(X, HAS)
    cases = [
        (lambda u: lax.psum(u, "y"), u, LEFT, P(), TOTAL),
        (lambda x: lax.psum(2 * left(x), "y"), X, P("y"), P(), 2 * TOTAL),
        (left, X, P("y"), LEFT, TOTAL),
        (lambda u: 2 * u, u, LEFT, LEFT, 2 * TOTAL),
        (lambda x: x, has, HAS, HAS, X),
        (lambda x: lax.all_gather(x, "y", tiled=True, to="reduced"), X, P("y"), HAS, X),
    ]
    for f, x, ins, outs, want in cases:
        with phalanx.disable_jit(inside):
            y = shard_map(f, in_specs=ins, out_specs=outs)(x)
        spec = typeof(y).sharding.spec
        assert (spec.unreduced, spec.reduced) == (outs.unreduced, outs.reduced)
        np.testing.assert_allclose(reshard(y, P()), want, rtol=1e-6)


def test_a_branch_that_positions_choose_differently():
    def f(u, x):
        chosen = lax.cond(x.sum() > 8, lambda x: x + lax.psum(x, "y"), lambda x: x, x)
        return chosen + lax.psum(u, "y")

    def alone(x):
        parts = x.reshape(4, 2, 8)
        chosen = [p + parts.sum(0) if p.sum() > 8 else p for p in parts]
        return np.concatenate(chosen) + np.tile(TOTAL, (4, 1))

    y = shard_map(f, in_specs=(LEFT, P("y")), out_specs=P("y"))(of_rows(), X)
    np.testing.assert_allclose(y, alone(X), rtol=1e-6)


def refused(f, x, ins, outs):
    return lambda: shard_map(f, in_specs=ins, out_specs=outs)(x())


REFUSED = {
    "a sum for what is whole": (
        refused(lambda u: u, of_rows, LEFT, P()),
        r"result is complete along 'y'.*lax\.psum\(x, 'y'\), or say so in its spec",
    ),
    "what varies for a sum": (
        refused(lambda x: x, lambda: X, P("y"), LEFT), r"unreduced along 'y'.*to='unreduced'",
    ),
    "what is whole for a sum": (
        refused(lambda x: x, lambda: X, P(), LEFT), r"unreduced along 'y', .* but it is f32\[8,8\]",
    ),
    "what is reduced for what is whole": (
        refused(lambda x: x, lambda: reshard(X, HAS), HAS, P()), r"P\(\.\., reduced={'y'}\)",
    ),
    "an argument that is no sum": (
        refused(lambda x: x, lambda: X, LEFT, LEFT), r"in_specs say that x is unreduced.*reshard",
    ),
    "an argument that is a sum": (
        refused(lambda x: x, of_rows, P(), P()), r"in_specs=P\(\.\., unreduced={'y'}\)",
    ),
    "a choice that differs": (
        refused(
            lambda u: lax.cond(lax.axis_index("y") > 0, lambda u: u, lambda u: -u, u),
            of_rows, LEFT, LEFT,
        ), r"what is done with it differs along that axis.*lax\.psum",
    ),
    "zeros that become a sum": (
        refused(
            lambda u: lax.fori_loop(0, 2, lambda i, c: c + u, jnp.zeros(u.shape)),
            of_rows, LEFT, LEFT,
        ), r"add: .* is still to be taken, and f32\[2,8\] is not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_told_with_what_to_write(case):
    call, words = REFUSED[case]
    with pytest.raises(ShardingTypeError, match=words) as raised:
        call()
    assert "test_sums_in_shard_map.py:" in str(raised.value)


def test_what_differs_is_not_reduced():
    with pytest.raises(ReplicationError, match="is the same along axis 'y'"):
        shard_map(lambda x: x, in_specs=P("y"), out_specs=HAS)(X)


# ---- axes that are taken inside of others -------------------------------------------------------


def cube(*kinds):
    return phalanx.make_mesh((2, 2, 2), ("a", "b", "c"), kinds)


def over(name, f, spec, out):
    return shard_map(f, in_specs=spec, out_specs=out, axis_names={name})


@pytest.mark.parametrize("kinds", [("Auto",) * 3, ("Explicit",) * 3, ("Auto", "Explicit", "Auto")])
@pytest.mark.parametrize("order", ["bc", "cb", "ca", "ba", "ac"])
def test_the_order_in_which_axes_are_taken(kinds, order):
    first, second = order

    def inside(x):
        return lax.psum(jnp.sin(x), second) * lax.axis_index(first)

    def outside(x):
        return over(second, inside, P(None, second), P())(x)

    x = np.arange(64.0, dtype="f").reshape(8, 8)
    with phalanx.set_mesh(cube(*[AxisType[kind] for kind in kinds])):
        f = phalanx.jit(over(first, outside, P(first), P(first)))
        y, slope = f(x), phalanx.grad(lambda x: jnp.sum(f(x) ** 2))(x)
    summed = np.sin(x)[:, :4] + np.sin(x)[:, 4:]
    summed[:4] = 0
    np.testing.assert_allclose(y, summed, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(slope, 2 * np.tile(summed, 2) * np.cos(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("axis", "other"), list(itertools.permutations("abc", 2)))
def test_sums_along_axes_that_stand_anywhere(axis, other):
    with phalanx.set_mesh(cube(*[AxisType.Explicit] * 3)):
        u = reshard(X, P(unreduced={other}))
        f = lambda u: reshard(u + reshard(u.T.T, P(unreduced={other})), P())  # noqa: E731
        u = reshard(u, P(axis, unreduced={other}))
        with where_compiled():
            y = phalanx.jit(over(axis, f, P(axis), P(axis)))(u)
            np.testing.assert_allclose(y, 2 * X, rtol=1e-6)


def test_axes_that_are_taken_inside_of_each_other():
    def both(x):
        twice = over("b", over("c", lambda x: 2 * x, P(None, "c"), P(None, "c")), P("b"), P("b"))
        thrice = over("c", over("b", lambda x: 3 * x, P(None, "b"), P(None, "b")), P("c"), P("c"))
        return twice(x) + thrice(x)

    with phalanx.set_mesh(cube(*[AxisType.Auto] * 3)):
        with pytest.raises(MeshesDiffer, match=r"inside of each other.*Nest them in one order"):
            phalanx.jit(both)(X)
        assert np.array_equal(both(X), 5 * X)
