"""Functions over several devices as portable modules: over any mesh of as many."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.export import deserialize, export
from phalanx.sharding import AbstractMesh, AxisType, Mesh, NamedSharding

COUNT = 2 * (phalanx.device_count() // 2)
pytestmark = [pytest.mark.spmd, pytest.mark.skipif(COUNT < 2, reason="one device")]

X = np.linspace(-0.9, 0.9, 8 * 16, dtype=np.float32).reshape(8, 16)
GRID = np.array(phalanx.devices())[: COUNT or 1]


def mesh_of(shape, names, kind=AxisType.Auto):
    return Mesh(GRID.reshape(shape), names, axis_types=(kind,) * len(names))


@pytest.fixture(scope="module")
def mesh():
    return mesh_of((2, -1), ("a", "b"))


@pytest.fixture(scope="module")
def others(mesh):
    """Meshes of as many devices, in other axes, in another order, of other types."""
    turned = Mesh(GRID.reshape(-1, 2).T, ("a", "b"))
    return mesh, mesh_of((-1,), ("c",)), turned, mesh_of((2, -1), ("a", "b"), AxisType.Explicit)


def scaled(x):
    return x / lax.psum(jnp.abs(x).sum(), ("a", "b"))


def functions(mesh):
    """Each with where its argument is to lie, and its result."""
    rows, columns = NamedSharding(mesh, P("a")), NamedSharding(mesh, P(None, "a"))
    cut = P("a", "b")

    def constrained(x):
        return lax.with_sharding_constraint(jnp.sin(x) @ x.T, columns)

    return [
        (phalanx.shard_map(scaled, mesh=mesh, in_specs=cut, out_specs=cut), None, None),
        (constrained, rows, None), (jnp.sin, rows, columns), (jnp.sin, None, rows),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(4))
def test_it_gives_what_the_function_gives_over_any_mesh(number, mesh, others):
    function, asked, given = functions(mesh)[number]
    made = export(phalanx.jit(function, in_shardings=asked, out_shardings=given))(X)
    made = deserialize(made.serialize())
    assert made.nr_devices == COUNT
    assert made.in_shardings_jax(mesh) == (asked,) and made.out_shardings_jax(mesh) == (given,)
    other = others[number]
    y = made.call(phalanx.device_put(X, NamedSharding(other, P(other.axis_names[0]))))
    np.testing.assert_allclose(y, function(X), rtol=1e-5, atol=1e-6)
    assert given is None or y.sharding.is_equivalent_to(given.update(mesh=y.sharding.mesh), 2)


def test_its_derivative_lies_as_it_does(mesh):
    function, rows, _ = functions(mesh)[1]
    made = deserialize(export(phalanx.jit(function, in_shardings=rows))(X).serialize(vjp_order=1))
    assert made.vjp().out_shardings_jax(mesh) == (rows,)

    def slope(f, x):
        return phalanx.grad(lambda x: (f(x) ** 2).sum())(x)

    found = slope(made.call, phalanx.device_put(X, rows))
    np.testing.assert_allclose(found, slope(function, X), rtol=1e-4, atol=1e-5)


def test_types_tell_shardings_along_explicit_axes(others):
    explicit = others[-1]
    with phalanx.set_mesh(explicit):
        x = phalanx.device_put(X, P("a"))
        made = export(phalanx.jit(lambda x: jnp.sin(x).T))(phalanx.ShapeDtypeStruct.like(x))
        assert [str(t) for t in (*made.in_avals, *made.out_avals)] == ["f32[8@a,16]", "f32[16,8@a]"]
        y = deserialize(made.serialize()).call(phalanx.device_put(X, P(None, "a")))
        assert phalanx.typeof(y).sharding.spec == P(None, "a")
        assert phalanx.typeof(phalanx.grad(lambda x: made.call(x).sum())(x)) == phalanx.typeof(x)
    np.testing.assert_allclose(y, np.sin(X).T, rtol=1e-6)


def test_derivatives_along_explicit_axes_need_no_mesh_that_is_set(others):
    explicit = others[-1]
    x, y = [phalanx.device_put(X, NamedSharding(explicit, s)) for s in (P("a"), P(None, "b"))]

    def product(x, y):
        return jnp.tanh(x @ y.T)

    made = deserialize(export(phalanx.jit(product))(x, y).serialize(vjp_order=2))
    found = phalanx.grad(lambda *xs: made.call(*xs).sum(), (0, 1))(x, y)
    assert [g.sharding.spec for g in found] == [P("a", None), P(None, "b")]
    for got, right in zip(
        found, phalanx.grad(lambda *xs: product(*xs).sum(), (0, 1))(X, X), strict=True
    ):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


def test_a_mesh_that_is_set_is_exported_for(mesh):
    with phalanx.set_mesh(mesh):
        made = export(phalanx.jit(lambda x: 2 * x))(np.ones(8, "float32"))
        assert made.nr_devices == COUNT and made.in_shardings_jax(mesh) == (None,)
        np.testing.assert_array_equal(made.call(np.ones(8, "float32")), np.full(8, 2.0))
        lanes = export(phalanx.pmap(lambda x: lax.psum(x, "i"), axis_name="i"))(np.ones(3, "int32"))
        assert lanes.nr_devices == 1 and lanes.call(np.ones(3, "int32")).tolist() == [3, 3, 3]


def test_no_device_need_be_there():
    grid = AbstractMesh((64,), ("data",))
    x = phalanx.ShapeDtypeStruct((128,), "float32", sharding=NamedSharding(grid, P("data")))
    made = export(phalanx.jit(lambda x: x - x.mean()), platforms=["tpu", "cuda"])(x)
    assert made.nr_devices == 64 and "mhlo.num_partitions = 64" in made.mlir_module()
    assert made.in_shardings_jax(grid) == (x.sharding,)


def test_wrong_calls_are_refused(mesh, others):
    rows = NamedSharding(mesh, P("a"))
    made = export(phalanx.jit(jnp.sin, in_shardings=rows))(X)
    with pytest.raises(phalanx.errors.NoMesh, match=rf"sin was exported for {COUNT} devices"):
        made.call(X)
    with pytest.raises(ValueError, match=r"exported over AbstractMesh\('a': 2.*lie over Mesh"):
        made.in_shardings_jax(others[1])
    each = phalanx.shard_map(made.call, mesh=mesh, in_specs=P(), out_specs=P())
    with pytest.raises(ValueError, match=rf"for {COUNT} devices and is called in shard_map"):
        each(X)
