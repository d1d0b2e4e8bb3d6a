"""``smap``: one axis of the mesh, and axes of arrays as ``vmap`` has them."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import ReplicationError, TreeError
from phalanx.sharding import AxisType, NamedSharding
from phalanx.sharding import PartitionSpec as P

N = phalanx.device_count()
X = np.arange(6.0 * N, dtype=np.float32).reshape(3, 2 * N)


@pytest.fixture
def mesh():
    mesh = phalanx.make_mesh((N,), ("x",), axis_types=(AxisType.Explicit,))
    with phalanx.set_mesh(mesh):
        yield mesh


def blocks_of(x):
    """As positions see them, joined as a new first axis."""
    return np.stack(np.split(x, N, axis=1))


@pytest.mark.parametrize("dim", [1, -1])
def test_each_position_has_a_block(mesh, dim):
    f = phalanx.smap(
        lambda x, w: x - w * lax.pmax(x, "x"), in_axes=(dim, None), out_axes=1, axis_name="x"
    )
    blocks = blocks_of(X)
    expected = np.concatenate(list(blocks - 2 * blocks.max(0)), axis=1)
    np.testing.assert_array_equal(f(X, 2.0), expected)
    np.testing.assert_array_equal(phalanx.jit(f)(X, 2.0), expected)
    assert f(X, 2.0).sharding == NamedSharding(mesh, P(None, "x"))


def test_without_in_axes_blocks_are_as_the_argument_lies(mesh):
    @phalanx.smap(out_axes=None, axis_name="x")
    def total(x):
        assert x.shape == (3, 2)
        return lax.psum(x.sum(1), "x")

    placed = phalanx.device_put(X, NamedSharding(mesh, P(None, "x")))
    np.testing.assert_array_equal(total(placed), X.sum(1))


def test_derivatives_and_vmap_around_it(mesh):
    f = phalanx.smap(lambda x: lax.psum((x**2).sum(), "x"), in_axes=1, out_axes=None, axis_name="x")
    np.testing.assert_array_equal(phalanx.grad(f)(X), 2 * X)
    pair = jnp.stack([X, 3 * X])
    np.testing.assert_allclose(phalanx.vmap(f)(pair), [(X**2).sum(), 9 * (X**2).sum()], rtol=1e-6)


@pytest.mark.skipif(N % 2, reason="it needs two axes")
def test_one_axis_inside_another():
    def inner(x):
        return lax.psum(x, "b") + lax.axis_index("a")

    x = np.arange(2.0 * N, dtype=np.float32).reshape(2, N)
    with phalanx.set_mesh(phalanx.make_mesh((2, N // 2), ("a", "b"))):
        rows = phalanx.smap(inner, in_axes=1, out_axes=None, axis_name="b")
        both = phalanx.smap(rows, in_axes=0, out_axes=0, axis_name="a")
        parts = x.reshape(2, N // 2, 2).sum(1)
        np.testing.assert_array_equal(both(x), parts + np.arange(2)[:, None])


def test_what_does_not_fit(mesh):
    def same(x):
        return x

    def smap(**options):
        return phalanx.smap(same, **{"in_axes": 0, "out_axes": 0, "axis_name": "x"} | options)

    with pytest.raises(TypeError, match="axis_name must be the name of one axis"):
        smap(axis_name=("x", "y"))
    with pytest.raises(ValueError, match=r"smap.same.*no axis 2"):
        smap(in_axes=2)(X)
    with pytest.raises(ValueError, match="counted from the front"):
        smap(out_axes=-1)
    with pytest.raises(TypeError, match="integer or None, got 'x'"):
        smap(out_axes="x")
    with pytest.raises(ValueError, match=r"smap\(same\): axis_name is 'y', which.* 'x'"):
        smap(axis_name="y")(X)
    with pytest.raises(TreeError):
        smap(in_axes=(0, 0))(X)
    if N > 1:
        with pytest.raises(ReplicationError):
            smap(in_axes=1, out_axes=None)(X)


def test_arguments_along_axes_left_to_the_compiler_do_not_tell_how_they_are_cut():
    refused = pytest.raises(TypeError, match=r"smap\(<lambda>\): in_axes was not specified")
    with phalanx.set_mesh(phalanx.make_mesh((N,), ("x",))), refused:
        phalanx.smap(lambda x: x, out_axes=0, axis_name="x")(X)


def test_without_a_mesh():
    with pytest.raises(ValueError, match=r"smap\(<lambda>\): there is no mesh.*set_mesh"):
        phalanx.smap(lambda x: x, in_axes=0, out_axes=0, axis_name="x")(X)
