"""What jit over meshes takes, refuses and tells."""

import functools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.errors import NoMesh
from phalanx.experimental import multihost_utils
from phalanx.experimental.pjit import pjit
from phalanx.lax import with_sharding_constraint
from phalanx.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from phalanx.sharding import PartitionSpec as P

COUNT = phalanx.device_count()
pytestmark = pytest.mark.skipif(COUNT < 2, reason="a mesh of several devices")


@pytest.fixture
def mesh():
    return phalanx.make_mesh((2, 1), ("rows", "one"))


def test_text_has_the_names_of_the_users_axes(mesh):
    def double(x):
        return with_sharding_constraint(2 * x, NamedSharding(mesh, P("rows", "one")))

    text = phalanx.jit(double).lower(jnp.ones((2, 2))).as_text()
    assert 'sdy.mesh @mesh = <["rows"=2]>' in text
    assert '<@mesh, [{"rows"}, {}]>' in text
    summed = phalanx.shard_map(
        lambda x: phalanx.lax.psum(x, "rows"), mesh=mesh, in_specs=P("rows"), out_specs=P()
    )
    assert 'manual_axes={"rows"}' in phalanx.jit(summed).lower(jnp.ones(2)).as_text()


def test_none_asks_pjit_for_copies_over_the_mesh(mesh):
    x = jnp.arange(4.0)

    def layout(f, x=x):
        return f(x).sharding.is_fully_replicated

    copies = pjit(jnp.sin, P("rows"), None)
    left = pjit(jnp.sin, P("rows"))
    in_tree = pjit(lambda x: (x, x), P("rows"), (None, P("rows")))
    with mesh:
        assert layout(copies) and not layout(left)
        assert [y.sharding.is_fully_replicated for y in in_tree(x)] == [True, False]
        np.testing.assert_allclose(copies(x), np.sin(np.arange(4.0)), rtol=1e-6)
    assert pjit(jnp.sin, out_shardings=None)(x).sharding.device_set == x.sharding.device_set
    explicit = phalanx.make_mesh((2,), ("rows",), AxisType.Explicit)
    with phalanx.set_mesh(explicit):  # where types tell how results lie
        laid = phalanx.device_put(x, P("rows"))
        assert not layout(pjit(jnp.sin, out_shardings=None), laid)


def test_all_arguments_of_other_types_are_told():
    compiled = phalanx.jit(lambda x, y, z: x + y + z).lower(*[jnp.ones(2)] * 3).compile()
    with pytest.raises(TypeError) as caught:
        compiled(jnp.arange(2), jnp.ones(2), jnp.ones(3))
    lines = str(caught.value).splitlines()[1:3]
    assert lines == [
        "Argument 'x' compiled with f32[2] and called with i32[2]",
        "Argument 'z' compiled with f32[2] and called with f32[3]",
    ]


@pytest.mark.parametrize("what", ["in_shardings", "out_shardings"])
def test_a_spec_that_no_mesh_can_follow_is_told_of_who_was_given_it(mesh, what):
    for spec, problem in (P("rows", "rows"), "more than once"), (P("cols"), "no axis 'cols'"):
        f = phalanx.jit(jnp.sin, **{what: spec})
        with mesh, pytest.raises(ValueError, match=rf"^jit\(sin\): {what}: .*{problem}"):
            f(jnp.ones((2, 2)))
    with pytest.raises(ValueError, match=f"Unconstrained dims are not allowed in {what}"):
        phalanx.jit(jnp.sin, **{what: NamedSharding(mesh, P(P.UNCONSTRAINED))})


def test_a_program_over_no_devices_is_not_compiled(mesh):
    x = phalanx.ShapeDtypeStruct((2,), "float32", sharding=NamedSharding(mesh.abstract_mesh, P()))
    lowered = phalanx.jit(lambda x: x + 1).trace(x).lower(lowering_platforms=("tpu",))
    with pytest.raises(NoMesh, match="was lowered over a mesh without devices"):
        lowered.compile()


def test_lanes_of_a_value_on_one_device_lie_there():
    place = SingleDeviceSharding(phalanx.devices()[0])
    f = phalanx.jit(phalanx.vmap(lambda x: with_sharding_constraint(x, place)))
    assert isinstance(f(jnp.arange(4)).sharding, SingleDeviceSharding)
    with pytest.raises(ValueError, match=r"spmd_axis_name gives the axes .'rows',. of a mesh"):
        phalanx.vmap(lambda x: with_sharding_constraint(x, place), spmd_axis_name="rows")(
            jnp.arange(4)
        )


def test_an_axis_of_lanes_cuts_no_other_dimension(mesh):
    rows = NamedSharding(mesh, P("rows"))
    f = phalanx.vmap(lambda x: with_sharding_constraint(x, rows), spmd_axis_name="rows")
    with pytest.raises(ValueError, match="spmd_axis_name gives the axis 'rows'"):
        f(jnp.ones((2, 2)))


@pytest.mark.skipif(COUNT < 4, reason="two axes that cut")
def test_a_constraint_along_auto_axes_leaves_explicit_ones():
    mesh = phalanx.make_mesh((2, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    with phalanx.set_mesh(mesh):
        x = phalanx.device_put(np.arange(16).reshape(8, 2), P("x"))
        told = []

        def f(x):
            y = with_sharding_constraint(x, P("y"))
            told.append(phalanx.typeof(y).sharding.spec[0])
            return y

        np.testing.assert_array_equal(phalanx.jit(f)(x), x)
        assert f(x).sharding.spec == P(("x", "y"), None)
        assert told == ["x", "x"]


def test_parts_change_devices_within_what_a_guard_allows():
    ids = phalanx.devices()[:2]
    there, turned = (NamedSharding(Mesh(np.array(d), "x"), P("x")) for d in (ids, ids[::-1]))
    x = phalanx.device_put(np.arange(4), there)
    with phalanx.transfer_guard("disallow_explicit"):
        moved = phalanx.device_put(x, turned)
        with pytest.raises(RuntimeError, match="Disallowed device-to-device"):
            phalanx.device_put(x, ids[0])
    np.testing.assert_array_equal(moved, np.arange(4))


def test_names_given_as_none_are_none():
    traced = []

    def f(x, y):
        traced.append(not isinstance(y, int))
        return x

    phalanx.jit(f, static_argnums=1, static_argnames=())(1, y=2)
    phalanx.jit(f, static_argnums=(), static_argnames="y")(1, 2)
    phalanx.jit(f, static_argnums=1)(1, y=2)
    phalanx.checkpoint(f, static_argnums=1)(1.0, y=2)
    assert traced == [True, True, False, False]


def test_names_alone_say_which_positions_are_nondifferentiable():
    @functools.partial(phalanx.custom_vjp, nondiff_argnames=("n",))
    def power(x, n):
        return x**n

    power.defvjp(lambda x, n: (x, x), lambda n, x, ct: (ct * n,))
    assert phalanx.grad(power)(2.0, 3) == 3.0


def test_an_array_of_one_process_is_local_already(mesh):
    x = phalanx.device_put(np.ones((2, 2)), NamedSharding(mesh, P("rows")))
    assert multihost_utils.global_array_to_host_local_array(x, mesh, P("rows")) is x


def test_device_put_inside_jit_tells_how_its_result_lies():
    told = []

    @phalanx.jit
    def f(x):
        y = phalanx.device_put(x, P("x"))
        told.extend([phalanx.typeof(y).sharding.spec, phalanx.typeof(phalanx.device_put(y))])
        return y

    with phalanx.set_mesh(phalanx.make_mesh((2,), ("x",), AxisType.Explicit)):
        y = f(jnp.arange(8.0).reshape(4, 2))
        assert told == [P("x", None), phalanx.typeof(y)]
        assert phalanx.grad(lambda x: f(x).sum())(y).sharding == y.sharding
