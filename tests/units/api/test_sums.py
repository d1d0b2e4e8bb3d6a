"""Arrays whose sum over devices is still to be taken."""

import copy
import pickle

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, reshard, typeof
from phalanx.errors import ShardingTypeError
from phalanx.sharding import AxisType, NamedSharding
from tests.over_mesh import mesh, over_a_mesh  # noqa: F401

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 4")
X = np.arange(64.0, dtype="f").reshape(8, 8) / 64
LEFT = P(unreduced={"y"})


def product():
    """X times X, of which each position of `y` has a part."""
    columns, rows = phalanx.device_put(X, P(None, "y")), phalanx.device_put(X, P("y"))
    return jnp.matmul(columns, rows, out_sharding=LEFT)


def test_each_device_has_a_part():
    u = product()
    assert str(typeof(u)) == "f32[8,8]{U:y}" and not u.is_fully_replicated
    assert typeof(u).sharding.spec == P(None, None, unreduced={"y"})
    assert u.sharding.spec.unreduced == {"y"}
    parts = {s.device: np.asarray(s.data) for s in u.addressable_shards}
    row = [parts[d] for d in mesh().devices[0]]
    np.testing.assert_allclose(sum(row), X @ X, rtol=1e-5)
    assert not np.allclose(row[0], row[1])


def test_operations_outside_of_jit():
    u = product()
    np.testing.assert_allclose(reshard(u, P()), X @ X, rtol=1e-5)
    np.testing.assert_allclose(reshard(2 * u - u.T, P("y")), 2 * X @ X - (X @ X).T, rtol=1e-5)
    np.testing.assert_allclose(reshard(reshard(X, LEFT), P(None, "y")), X)
    chosen = jnp.where(X > 0.5, u, jnp.zeros_like(u))
    np.testing.assert_allclose(reshard(chosen, P()), (X > 0.5) * (X @ X), rtol=1e-5)
    np.testing.assert_allclose(reshard(phalanx.vmap(lambda r: -r)(u), P()), -X @ X, rtol=1e-5)


def test_programs_with_sums_left_to_take_are_checked():
    with phalanx.enable_checks():
        pulled = phalanx.jit(phalanx.grad(lambda x: jnp.sum(jnp.sin(x) @ X)))
        x = phalanx.device_put(X, P("y", reduced={"x"}))
        np.testing.assert_allclose(reshard(pulled(x), P()), np.cos(X) * X.sum(1), rtol=1e-5)
        np.testing.assert_allclose(reshard(phalanx.jit(product)(), P()), X @ X, rtol=1e-5)


def test_what_was_asked_of_a_call_does_not_hold_for_the_next():
    """The same arguments otherwise, and functions that are called with tables that are full."""
    columns, rows = phalanx.device_put(X, P(None, "y")), phalanx.device_put(X, P("y"))
    twice = jnp.stack([columns, columns])
    calls = (
        lambda **asked: jnp.matmul(columns, rows, precision=lax.Precision.HIGHEST, **asked),
        lambda **asked: jnp.einsum("ij,jk->ik", columns, rows, **asked),
        lambda **asked: lax.dot_general(columns, rows, (((1,), (0,)), ((), ())), **asked),
    )
    for call in calls:
        for _ in range(2):
            assert typeof(call(out_sharding=LEFT)).unreduced == {"y"}
            with pytest.raises(ShardingTypeError, match="the sum is over dimensions that are cut"):
                call()
            assert not typeof(call(out_sharding=P("x"))).unreduced
    for _ in range(2):
        left = lax.reduce_sum(twice, (2,), out_sharding=P(None, None, unreduced={"y"}))
        assert typeof(left).unreduced == {"y"} and not typeof(twice.sum(2)).unreduced
        np.testing.assert_allclose(reshard(left, P()), twice.sum(2), rtol=1e-6)


def test_programs_say_which_sums_are_left():
    program = phalanx.make_program(product)()
    (dot,) = [e for e in program.equations if e.prim.name == "dot_general"]
    assert dot.params["unreduced"] == ("y",) and dot.outputs[0].type.unreduced == {"y"}
    types = [a.type for a in dot.inputs]
    assert dot.prim.result_type(types, dot.params) is dot.outputs[0].type
    plain = {name: p for name, p in dot.params.items() if name != "unreduced"}
    with pytest.raises(ShardingTypeError, match="cut by 'y'"):
        dot.prim.result_type(types, plain)


def test_complex_numbers():
    z = (X + 1j * X.T).astype("complex64")
    np.testing.assert_allclose(phalanx.jit(lambda z: reshard(reshard(z, LEFT), P()))(z), z)


@pytest.mark.parametrize("to", [LEFT, P("x", unreduced={"y"}), P(unreduced={"x", "y"}), P("y")])
def test_what_is_put_is_the_first_part_of_the_sum(to):
    """Inside of jit and outside, of whole arrays and of sums."""
    put = phalanx.jit(lambda x: phalanx.device_put(x, to))
    for x, whole in ((X, X), (jnp.asarray(X), X), (product(), X @ X)):
        for y in (phalanx.device_put(x, to), put(x)):
            assert y.sharding.spec.unreduced == to.unreduced == typeof(y).unreduced
            np.testing.assert_allclose(reshard(y, P()), whole, rtol=1e-5)
    back = phalanx.grad(lambda x: (reshard(phalanx.device_put(x, to), P()) * X).sum())(X)
    np.testing.assert_allclose(back, X, rtol=1e-6)


def test_an_argument_that_nothing_depends_on_has_a_sum_of_zeros():
    x = phalanx.device_put(X, P(reduced={"y"}))
    gradient = phalanx.grad(lambda x: jnp.ones(3).sum())
    for y in (gradient(x), phalanx.jit(gradient)(x)):
        assert y.sharding.spec.unreduced == {"y"} == typeof(y).unreduced and not typeof(y).reduced
        np.testing.assert_array_equal(reshard(y, P()), 0)


LOOPS = {
    "closed over": lambda u, rows: lax.scan(lambda c, _: (c + u, None), u, None, length=3)[0],
    "counted": lambda u, rows: lax.fori_loop(0, 3, lambda i, c: c + u, jnp.zeros_like(u)),
    "given out": lambda u, rows: lax.scan(lambda c, _: (c, u), 0.0, None, length=3)[1],
    "rows": lambda u, rows: lax.scan(lambda c, x: (c + x, None), u, rows)[0],
    "rows, two a step, backwards": lambda u, rows: lax.scan(
        lambda c, x: (c + x + u, c), u, rows, unroll=2, reverse=True
    )[1],
    "in a loop": lambda u, rows: lax.fori_loop(
        0, 2, lambda i, c: lax.fori_loop(0, 3, lambda j, d: d + u, c) + rows[0], u
    ),
    "in a branch": lambda u, rows: lax.fori_loop(
        0, 3, lambda i, c: lax.cond(i > 0, lambda: c + u, lambda: c), u
    ),
    "running sums": lambda u, rows: lax.associative_scan(jnp.add, rows, reverse=True),
    "called": lambda u, rows: lax.fori_loop(0, 3, lambda i, c: phalanx.jit(jnp.add)(c, u), u),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_read_sums_from_outside(loop):
    """The result is that of whole arrays, and so are its slopes by the summands."""
    stack = np.stack([X, -X.T, X * X])
    expected = np.asarray(LOOPS[loop](jnp.asarray(X), jnp.asarray(stack)))

    def taken(x, rows):
        parts = reshard(x, P("x", unreduced={"y"})), reshard(rows, P(None, "x", unreduced={"y"}))
        return reshard(LOOPS[loop](*parts), P())

    np.testing.assert_allclose(phalanx.jit(taken)(X, stack), expected, rtol=1e-5)
    slopes = phalanx.jit(phalanx.grad(lambda *a: (taken(*a) ** 2).sum(), (0, 1)))(X, stack)
    whole = phalanx.grad(lambda *a: (LOOPS[loop](*a) ** 2).sum(), (0, 1))(X, stack)
    for found, one in zip(slopes, whole, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-5)


def test_a_loop_of_unknown_length_reads_a_sum_from_outside():
    def looped(u):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + u), (0, u))[1]

    taken = phalanx.jit(lambda x: reshard(looped(reshard(x, LEFT)), P()))
    np.testing.assert_allclose(taken(X), 4 * X, rtol=1e-6)


def test_nothing_reads_what_has_no_value_yet():
    u = product()
    told = f"Array(shape=(8, 8), dtype=float32, sharding={u.sharding})"
    assert repr(u) == str(u) == f"{u}" == told and "unreduced={'y'}" in told
    for read in (np.asarray, lambda u: float(u.sum()), lambda u: u.tolist(), phalanx.device_get):
        with pytest.raises(ShardingTypeError, match=r"no value yet, at test_sums.*reshard\(x, P"):
            read(u)


def refused_blocks():
    return phalanx.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))(product())


def refused_lanes():
    return phalanx.pmap(lambda x: reshard(x, P()))(product())


def refused_mask():
    return reshard(X > 0, LEFT)


def refused_factor():
    return product() * phalanx.device_put(X, P("y"))


def refused_filling():
    return lax.pad(product(), 1.0, ((1, 0, 0), (0, 0, 0)))


def refused_integers():
    return product().astype(int)


@pytest.mark.parametrize(
    "f",
    [
        refused_blocks, refused_lanes, refused_mask,
        refused_factor, refused_filling, refused_integers,
    ],
)  # fmt: skip
def test_what_sums_are_not_for_is_refused_with_what_to_write(f):
    with pytest.raises(ShardingTypeError, match=r"f32\[8,8\]|b1\[8,8\]") as raised:
        f()
    assert "test_sums.py" in str(raised.value)


def test_along_auto_axes_no_type_tells_them():
    refused = pytest.raises(ShardingTypeError, match="of type Auto; make the mesh with")
    with phalanx.set_mesh(mesh(AxisType.Auto)), refused:
        reshard(X, LEFT)
    with pytest.raises(ValueError, match=r"no axis of.*The axes are 'x', 'y'"):
        NamedSharding(mesh(), P(reduced={"z"}))


def test_shapes_without_data_tell_them():
    x = phalanx.ShapeDtypeStruct((8, 8), "float32", sharding=P("x", unreduced={"y"}))
    twice = phalanx.eval_shape(lambda x: x + x, x)
    assert str(twice.sharding.spec) == "P('x', None, unreduced={'y'})"
    info = phalanx.jit(lambda x: reshard(x, P("x"))).lower(x).compile().out_info
    assert info.sharding.spec == P("x", None)


def test_what_is_laid_out_first_is_known_to_what_follows():
    types = []

    @phalanx.jit
    def f(x):
        types.append(typeof(jnp.sin(reshard(x, P("y", reduced={"x"})))))
        return x

    f(X)
    assert list(map(str, types)) == ["f32[8@y,8]{R:x}"]


def test_results_are_sums_as_out_shardings_say():
    double = phalanx.jit(
        lambda x: {"left": 2 * x, "own": x}, out_shardings={"left": LEFT, "own": None}
    )
    for f in (double, phalanx.jit(double), double.lower(phalanx.device_put(X, P())).compile()):
        made = f(phalanx.device_put(X, P()))
        assert typeof(made["left"]).unreduced == {"y"} and not typeof(made["own"]).unreduced
        np.testing.assert_allclose(reshard(made["left"], P()), 2 * X)
    taken = phalanx.jit(lambda u: u, out_shardings=P("x"))(product())
    assert typeof(taken).sharding.spec == P("x", None)
    np.testing.assert_allclose(taken, X @ X, rtol=1e-5)


def test_sums_without_elements():
    u = product()
    for f in (lambda u: u[:0], phalanx.jit(lambda u: 2 * u[:0])):
        assert typeof(f(u)).unreduced == {"y"} and f(u).shape == (0, 8)
    sums = reshard(lax.associative_scan(jnp.add, u), P())
    np.testing.assert_allclose(sums, np.cumsum(X @ X, 0), rtol=1e-5)


def test_a_gradient_of_a_gradient():
    def loss(w):
        return jnp.sum(reshard(jnp.sin(w) ** 3, P()))

    w = reshard(X, P(reduced={"y"}))
    second = phalanx.grad(lambda w: jnp.sum(reshard(phalanx.grad(loss)(w), P())))
    s, c = np.sin(X), np.cos(X)
    wanted = 6 * s * c**2 - 3 * s**3
    np.testing.assert_allclose(reshard(second(w), P()), wanted, rtol=1e-4, atol=1e-5)


def test_a_product_left_to_sum_is_made_again_as_it_was():
    def loss(x, w):
        u = jnp.matmul(x, w, out_sharding=LEFT)
        return jnp.sum(jnp.sin(reshard(u, P())))

    x, w = phalanx.device_put(X, P(None, "y")), phalanx.device_put(X, P("y"))
    again = phalanx.checkpoint(loss)
    for f in (phalanx.grad(again, (0, 1)), phalanx.jit(phalanx.grad(again, (0, 1)))):
        dx, dw = f(x, w)
        np.testing.assert_allclose(dx, np.cos(X @ X) @ X.T, rtol=1e-4)
        np.testing.assert_allclose(dw, X.T @ np.cos(X @ X), rtol=1e-4)


CLOSED_OVER = {
    "a loop": lambda u: lax.scan(lambda c, _: (c + u, None), u, None, length=3)[0],
    "a branch": lambda u: lax.cond(True, lambda: u + u, lambda: u),
    "what is jitted": lambda u: phalanx.jit(lambda s: s * u)(3.0),
    "what is mapped": lambda u: phalanx.vmap(lambda s: s * u)(jnp.arange(3.0)),
    "a derivative": lambda u: phalanx.jvp(lambda s: s * u, (2.0,), (3.0,))[1],
}


@pytest.mark.parametrize("what", CLOSED_OVER)
def test_what_is_compiled_closes_over_sums(what):
    closed = CLOSED_OVER[what]
    found = reshard(closed(reshard(X, P("x", unreduced={"y"}))), P())
    np.testing.assert_allclose(found, closed(jnp.asarray(X)), rtol=1e-5)
    u = product()
    with phalanx.enable_checks():  # of the types in the linear half, too
        slope = phalanx.grad(lambda s: reshard(s * u, P()).sum())(2.0)
    np.testing.assert_allclose(slope, (X @ X).sum(), rtol=1e-5)


def test_a_sum_that_is_put_on_other_devices_is_taken_first():
    u, one = product(), phalanx.devices()[3]
    pair = phalanx.make_mesh((2,), ("x",), (AxisType.Explicit,), devices=phalanx.devices()[:2])
    for to in (one, NamedSharding(pair, P("x")), phalanx.devices()[:4]):
        y = phalanx.device_put(u, to)
        np.testing.assert_allclose(y, X @ X, rtol=1e-5)
        assert len(y.devices()) < 8
    assert phalanx.device_put(u, one).devices() == {one}


def test_a_copy_of_a_sum_is_the_same_sum():
    u = product()
    twin = copy.deepcopy(u)
    assert typeof(twin) == typeof(u) and twin.sharding == u.sharding and twin is not u
    u.delete()
    np.testing.assert_allclose(reshard(twin, P()), X @ X, rtol=1e-5)
    with pytest.raises(ShardingTypeError, match=r"no value yet"):
        pickle.dumps(twin)


@pytest.mark.parametrize("to", [P(unreduced={"x"}), P("y", reduced={"x"})])
def test_lanes_return_no_sums(to):
    put = phalanx.pmap(lambda x: (x, phalanx.device_put(2 * x, to)))
    with pytest.raises(ShardingTypeError, match=r"result\[1\] is f32\[8\S*\]\{[UR]:x\}.*test_sums"):
        put(X)
    taken = phalanx.pmap(lambda x: reshard(phalanx.device_put(2 * x, to), P()))
    np.testing.assert_array_equal(taken(X), 2 * X)


@pytest.mark.parametrize("entries", [(), ("x",), (None, "y"), ("x", "y")])
def test_sums_lie_next_to_axes_of_type_auto(entries):
    grid = phalanx.make_mesh(
        (2, 2, 2), ("x", "y", "z"), (AxisType.Auto, AxisType.Auto, AxisType.Explicit)
    )
    left = P(unreduced={"z"})

    def laid(x):
        return reshard(lax.with_sharding_constraint(x, P(*entries)), left)

    with phalanx.set_mesh(grid):
        for u in (reshard(X, left), phalanx.device_put(X, left), phalanx.jit(laid)(X)):
            assert u.sharding.spec.unreduced == {"z"} == typeof(u).unreduced
            np.testing.assert_array_equal(reshard(u + u, P()), 2 * X)
            np.testing.assert_array_equal(phalanx.jit(lambda u: reshard(3 * u, P()))(u), 3 * X)
        columns, rows = phalanx.device_put(X, P(None, "z")), phalanx.device_put(X, P("z"))
        both = phalanx.jit(lambda a, b: jnp.matmul(a, b, out_sharding=left))
        np.testing.assert_allclose(reshard(both(columns, rows), P()), X @ X, rtol=1e-5)


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize("read", [abs, np.asarray, pickle.dumps])
def test_what_python_itself_calls_ends_in_the_users_line(read):
    with pytest.raises(ShardingTypeError) as raised:
        read(product())
    assert {entry.path.name for entry in raised.traceback} == {"test_sums.py"}


def test_data_of_a_process_are_a_summand_of_each_device():
    to = NamedSharding(mesh(), P("x", unreduced={"y"}))
    for u in (
        phalanx.make_array_from_process_local_data(to, X),
        phalanx.make_array_from_callback(X.shape, to, X.__getitem__),
    ):
        assert typeof(u).unreduced == {"y"}
        np.testing.assert_array_equal(reshard(u, P()), 4 * X)


def test_ahead_of_time_a_sum_is_an_argument():
    """However it is told that it comes, and whether its memory may be taken."""
    to = NamedSharding(mesh(), LEFT)
    told = phalanx.ShapeDtypeStruct((8, 8), "float32", sharding=to)
    untold = phalanx.ShapeDtypeStruct((8, 8), "float32")
    twice, given = (phalanx.jit(lambda u: u + u, in_shardings=s) for s in (None, to))
    freed = phalanx.jit(lambda u: u + u, donate_argnums=0)
    for f, x in ((twice, told), (twice, product()), (given, untold), (freed, told)):
        compiled, u = f.lower(x).compile(), product()
        assert compiled.input_shardings[0][0].is_equivalent_to(to, 2)
        np.testing.assert_allclose(reshard(compiled(u), P()), 2 * X @ X, rtol=1e-5)
        assert u.is_deleted() == (f is freed)


WHOLE = {
    "the host's": lambda: X,
    "put nowhere": lambda: jnp.asarray(X),
    "put": lambda: phalanx.device_put(X, P()),
}


@pytest.mark.parametrize("what", WHOLE)
def test_what_is_whole_is_not_taken_for_each_part_of_a_sum(what):
    """It would be counted as often as there are positions along the axis; how to put it is said."""
    to, whole = NamedSharding(mesh(), LEFT), WHOLE[what]()
    told = phalanx.ShapeDtypeStruct((8, 8), "float32")
    asked = phalanx.jit(lambda u: u + u, in_shardings=to)
    followed = phalanx.jit(lambda u: u + u).lower(product()).compile()
    for f in (asked, asked.lower(told).compile(), followed):
        with pytest.raises(ValueError, match=r"jit\(<lambda>\): .* u, .*device_put\(x, sharding\)"):
            f(whole)
        np.testing.assert_array_equal(reshard(f(phalanx.device_put(whole, to)), P()), 2 * X)
