"""``jit`` over sharded arrays: how they lie changes no value, and is what the user says it is."""

import math

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax, random
from phalanx.experimental.pjit import pjit
from phalanx.sharding import AbstractMesh, Mesh, NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.spmd
MESHES = [
    (("x", 1), ("y", 8)),
    (("x", 2), ("y", 4)),
    (("x", 4), ("y", 2)),
    (("x", 2), ("y", 2), ("z", 2)),
    (("x", 2), ("y", 2)),
    (("x", 1), ("y", 3)),
    (("x", 1),),
]
X = np.sin(np.arange(48 * 24, dtype=np.float32)).reshape(48, 24)
W = np.cos(np.arange(24 * 24, dtype=np.float32)).reshape(24, 24)


def line():
    """A mesh of all devices in a row."""
    return phalanx.make_mesh((phalanx.device_count(),), ("x",))


def program(constrain):
    """A function in which ``constrain(value, number)`` does nothing to values of three kinds."""

    def run(x, w, key):
        h = constrain(jnp.tanh(x @ w) + random.normal(key, x.shape), 0)

        def add(total, row):
            total = constrain(total + row, 1)
            return total, jnp.sum(total)

        last, sums = lax.scan(add, jnp.zeros(24), h)
        y = lax.cond(sums[0] > 0, lambda h: constrain(h * 2, 2), lambda h: -h, h)
        return {"last": last, "y": y}

    def loss(x, w, key):
        return sum(jnp.sum(v**2) for v in phalanx.tree.leaves(run(x, w, key)))

    return lambda *args: {**run(*args), "slope": phalanx.grad(loss)(*args)}


@st.composite
def specs(draw, axes, ndim, open_dims=False):
    """A spec for arrays of so many dimensions; each axis cuts one of them, or none."""
    entries = [[] for _ in range(ndim)]
    for name in draw(st.permutations([name for name, _ in axes])):
        place = draw(st.integers(0, ndim))
        if place < ndim:
            entries[place].append(name)
    free = st.sampled_from([None, P.UNCONSTRAINED] if open_dims else [None])
    return P(*(tuple(names) if names else draw(free) for names in entries))


@given(st.data())
def test_shardings_change_no_value(data):
    devices = phalanx.devices()
    fitting = [axes for axes in MESHES if math.prod(n for _, n in axes) == len(devices)]
    axes = data.draw(st.sampled_from(fitting))
    order = data.draw(st.permutations(devices))
    mesh = phalanx.make_mesh([n for _, n in axes], [name for name, _ in axes], devices=order)

    def drawn(ndim, open_dims=False):
        spec = data.draw(specs(axes, ndim, open_dims))
        return NamedSharding(mesh, spec)

    # XLA's partitioner makes mistakes where a loop goes along rows that are cut, and where it
    # chooses itself how a product lies that is then asked for otherwise (docs/limits.md)
    columns = data.draw(specs(axes, 1))
    asked = [NamedSharding(mesh, P(None) + columns), drawn(1, True), drawn(2, True)]
    ins, outs = (drawn(2), None, drawn(0)), {"last": drawn(1), "y": drawn(2), "slope": drawn(2)}
    placed = phalanx.device_put(W, drawn(2))
    note(f"{mesh} {asked} {ins} {outs}")
    constrained = program(lambda x, i: lax.with_sharding_constraint(x, asked[i]))
    f = phalanx.jit(constrained, in_shardings=ins, out_shardings=outs)
    key = random.key(0)
    given, wanted = f(X, placed, key), phalanx.jit(program(lambda x, i: x))(X, W, key)
    assert phalanx.tree.map(lambda x: x.sharding, given) == outs
    for name, value in wanted.items():
        np.testing.assert_allclose(given[name], value, rtol=2e-4, atol=2e-4, err_msg=name)
    compiled = f.lower(X, placed, key).compile()
    assert compiled.input_shardings[0] == (ins[0], placed.sharding, ins[2])
    assert compiled.output_shardings == outs


def test_random_bits_do_not_depend_on_the_sharding():
    mesh = line()

    def draw(key):
        return random.bits(key, (24, 24))

    whole = phalanx.jit(draw)(random.key(1))
    for spec in (P("x"), P(None, "x")):
        parted = phalanx.jit(draw, out_shardings=NamedSharding(mesh, spec))(random.key(1))
        np.testing.assert_array_equal(parted, whole)


def test_bits_are_reduced_over_rows_that_are_cut():
    rows = 1000 + np.arange(24 * 3, dtype=np.int32).reshape(24, 3) ** 2
    bits = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for x in (rows, rows > 3000):
        placed = phalanx.device_put(x, NamedSharding(line(), P("x")))
        for name, ufunc in bits.items():
            reduced = getattr(lax, f"reduce_{name}")(placed, (0,))
            np.testing.assert_array_equal(reduced, ufunc.reduce(x, 0), name)


def test_complex_numbers_are_compared_over_rows_that_are_cut():
    rows = (np.arange(24 * 3) % 5 + 1j * (np.arange(24 * 3) * 7 % 11)).reshape(24, 3)
    rows = rows.astype(np.complex64)
    rows[5, 2] = np.nan
    placed = phalanx.device_put(rows, NamedSharding(line(), P("x")))
    for name in ("max", "min", "argmax", "argmin"):
        given = getattr(jnp, name)(placed, axis=0)
        np.testing.assert_array_equal(given, getattr(np, name)(rows, axis=0), name)


def test_lanes_that_do_not_divide_feed_jit():
    """What ``pmap`` gives over devices may be uneven; a program takes it as it is."""
    lanes = phalanx.pmap(lambda x: 2 * x)(np.arange(phalanx.device_count() + 2.0))
    sums = np.cumsum(2 * np.arange(len(lanes)))
    np.testing.assert_array_equal(phalanx.jit(jnp.cumsum)(lanes), sums)
    mesh = line()
    rows = jnp.tile(lanes[:, None], (1, phalanx.device_count()))
    f = phalanx.jit(lambda x: x + 1, out_shardings=NamedSharding(mesh, P(None, "x")))
    np.testing.assert_array_equal(f(rows), np.asarray(rows) + 1)


def test_lanes_of_vmap_are_left_open_or_lie_over_the_axis_that_is_named():
    rows = NamedSharding(line(), P("x"))
    f = phalanx.vmap(lambda x: lax.with_sharding_constraint(x + 1, rows), in_axes=1, out_axes=1)
    np.testing.assert_array_equal(phalanx.jit(f)(X), X + 1)
    assert f(X).sharding.is_equivalent_to(rows, 2)
    whole = NamedSharding(line(), P())
    g = phalanx.vmap(lambda x: lax.with_sharding_constraint(x + 1, whole), spmd_axis_name="x")
    np.testing.assert_array_equal(phalanx.jit(g)(X), X + 1)
    assert g(X).sharding == rows


@pytest.mark.parametrize("lanes", [2, 3, 8])
def test_lanes_run_among_the_devices_of_a_constraint(lanes):
    def shifted(x):
        y = phalanx.pmap(lambda row: row + lax.psum(row, "i"), axis_name="i")(x)
        return lax.with_sharding_constraint(y, NamedSharding(line(), P(None, "x")))

    x = X[:lanes]
    given = phalanx.jit(shifted)(x)
    np.testing.assert_allclose(given, x + x.sum(0), rtol=1e-5, atol=1e-5)
    assert given.sharding.device_set == set(phalanx.devices())


def test_a_constraint_inside_lanes_changes_nothing():
    asked = NamedSharding(line(), P("x"))
    f = phalanx.pmap(lambda row: lax.with_sharding_constraint(2 * row, asked))
    np.testing.assert_array_equal(f(X), 2 * X)


def test_a_region_leaves_an_axis_to_constraints_inside():
    count = phalanx.device_count()
    sizes = (2, count // 2) if count % 2 == 0 else (1, count)
    mesh = phalanx.make_mesh(sizes, ("x", "y"))
    columns = NamedSharding(mesh, P(None, "y"))

    @phalanx.jit
    @phalanx.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    def summed(x):
        return lax.with_sharding_constraint(lax.psum(2 * x, "x"), columns)

    given = summed(X)
    np.testing.assert_allclose(given, 2 * X.reshape(sizes[0], -1, 24).sum(0), rtol=1e-5, atol=1e-5)
    assert given.sharding.is_equivalent_to(columns, 2)


def test_options_of_functions_and_meshes_that_are_set_name_the_layout():
    mesh = line()
    with phalanx.set_mesh(mesh):
        y = jnp.einsum("ij,jk", X, W, out_sharding=P("x"))
        z = phalanx.jit(lambda: jnp.zeros((24, 3), out_sharding=P("x")) + 1)()
        abstract = NamedSharding(mesh.abstract_mesh, P("x"))
        x = phalanx.jit(lambda x: lax.with_sharding_constraint(x, abstract))(X)
        f = pjit(lambda x: [x[0] + 1], ([P()],), [P("x")])
        (w,) = f([np.zeros(24)])
    for there in (x, y, z, w):
        assert there.sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_allclose(y, X @ W, rtol=1e-4, atol=1e-4)


def test_a_mesh_without_devices_is_over_those_of_the_arguments():
    count = phalanx.device_count()
    reversed_mesh = Mesh(phalanx.devices()[::-1], "x")
    x = phalanx.device_put(X, NamedSharding(reversed_mesh, P("x")))
    for name in ("x", "z"):
        asked = NamedSharding(AbstractMesh((count,), name), P(None, name))
        wanted = NamedSharding(Mesh(reversed_mesh.devices, name), P(None, name))
        inside = phalanx.jit(lambda x, s=asked: lax.with_sharding_constraint(x + 1, s))
        outside = phalanx.jit(lambda x: x + 1, out_shardings=asked)
        for y in (inside(x), outside(x), lax.with_sharding_constraint(x + 1, asked)):
            assert y.sharding is wanted
            np.testing.assert_array_equal(y, X + 1)
    assert inside.lower(x).compile().output_shardings == wanted


def test_a_result_is_told_in_the_words_of_a_constraint_before_those_of_arguments():
    x = phalanx.device_put(X, NamedSharding(line(), P("x")))
    asked = NamedSharding(Mesh(line().devices, "z"), P("z"))
    inside = phalanx.jit(lambda x: lax.with_sharding_constraint(x + 1, asked))
    for f in (inside, phalanx.jit(lambda x: inside(x)), phalanx.jit(lambda x: inside(x) * 2)):
        assert f(x).sharding is asked
    assert phalanx.jit(lambda x: x + 1)(x).sharding is x.sharding


def test_what_is_put_somewhere_inside_jit_lies_there():
    columns = NamedSharding(line(), P(None, "x"))

    def put(x):
        return phalanx.device_put(x + 1, columns)

    def loss(x):
        return jnp.sum(put(x) ** 2)

    for x in (X, phalanx.device_put(X, NamedSharding(line(), P("x")))):
        given = phalanx.jit(put)(x)
        assert given.sharding == columns
        np.testing.assert_array_equal(given, X + 1)
        np.testing.assert_allclose(phalanx.jit(phalanx.grad(loss))(x), 2 * X + 2, rtol=1e-6)
    lanes = phalanx.jit(phalanx.vmap(put))(X[None])
    assert lanes.sharding.is_equivalent_to(NamedSharding(line(), P(None, None, "x")), 3)
    np.testing.assert_array_equal(lanes[0], X + 1)


def test_memory_is_donated_to_a_result_that_lies_alike():
    rows, whole = (NamedSharding(line(), spec) for spec in (P("x"), P()))
    x = phalanx.device_put(X, rows)
    f = phalanx.jit(lambda x: x + 1, donate_argnums=0, out_shardings=whole)
    if phalanx.device_count() > 1:
        with pytest.warns(UserWarning, match="not usable: x"):
            np.testing.assert_array_equal(f(x), X + 1)
        with pytest.warns(UserWarning, match="not usable: x"):
            compiled = f.lower(x).compile()
        np.testing.assert_array_equal(compiled(x), X + 1)
        np.testing.assert_array_equal(x, X)
    g = phalanx.jit(lambda x: x + 1, donate_argnums=0, out_shardings=rows)
    np.testing.assert_array_equal(g(x), X + 1)
    assert x.is_deleted()


@pytest.mark.parametrize("wanted", ["first", "last", "whole", "rows"])
def test_a_donated_array_is_kept_if_no_device_had_its_part_before(wanted):
    first, last = phalanx.devices()[0], phalanx.devices()[-1]
    rows, whole = (NamedSharding(line(), spec) for spec in (P("x"), P()))
    places = {"first": SingleDeviceSharding(first), "last": SingleDeviceSharding(last)}
    place = {**places, "whole": whole, "rows": rows}[wanted]
    x = jnp.asarray(X)
    f = phalanx.jit(lambda x: x + 1, donate_argnums=0, in_shardings=place, out_shardings=place)
    np.testing.assert_array_equal(f(x), X + 1)
    stays = wanted in ("first", "whole") or first is last
    assert x.is_deleted() == stays
    if not stays:
        np.testing.assert_array_equal(x, X)


def test_pmap_keeps_a_donated_array_that_it_deals_out():
    x = jnp.ones((phalanx.device_count(), 3))
    f = phalanx.pmap(lambda x: x + 1, donate_argnums=0)
    dealt = f(x)
    assert x.is_deleted() == (phalanx.device_count() == 1)  # where it lay before
    if not x.is_deleted():
        np.testing.assert_array_equal(x, np.ones(x.shape))
    np.testing.assert_array_equal(f(dealt), np.full(x.shape, 3))
    assert dealt.is_deleted()


def test_an_array_closed_over_stays_where_it_lies():
    mesh = line()
    table = phalanx.device_put(X, NamedSharding(mesh, P("x")))
    f = phalanx.jit(lambda i: table[i])
    np.testing.assert_array_equal(f(5), X[5])
    assert f.lower(5).compile().input_shardings[0][0].device_set == set(phalanx.devices())
