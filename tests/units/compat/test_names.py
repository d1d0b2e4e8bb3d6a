"""Names of operations, and of their parameters, as jax has them."""

import jax as peer
import numpy as np
import pytest

import phalanx
from phalanx.compat import operations
from phalanx.compat.jaxprs import eval_jaxpr, make_jaxpr

pytestmark = pytest.mark.skipif(phalanx.device_count() < 2, reason="needs a mesh of 2")
X = np.arange(8, dtype="f4").reshape(4, 2)


def mesh(jax, kind):
    return jax.make_mesh((2,), ("i",), axis_types=(getattr(jax.sharding.AxisType, kind),))


def over_mesh(jax, function):
    i = jax.sharding.PartitionSpec("i")
    return jax.shard_map(function, in_specs=i, out_specs=i)


@pytest.mark.parametrize(
    "kind, function",
    [
        ("Auto", lambda jax: jax.checkpoint(jax.numpy.sin)),
        ("Auto", lambda jax: over_mesh(jax, lambda x: jax.lax.psum_scatter(x, "i"))),
        ("Auto", lambda jax: over_mesh(jax, lambda x: x * jax.lax.psum(x, "i"))),
        ("Auto", lambda jax: lambda x: jax.lax.with_sharding_constraint(x, jax.P("i"))),
        ("Explicit", lambda jax: lambda x: jax.sharding.reshard(x, jax.P("i"))),
    ],
)
def test_operations_have_the_names_of_the_field(kind, function):
    def names(jaxpr):
        for e in jaxpr.eqns:
            yield e.primitive.name
            inner = e.params.get("jaxpr")
            yield from names(inner) if inner else ()

    def found(jax, make):
        with jax.set_mesh(mesh(jax, kind)):
            return list(names(make(function(jax))(X)))

    assert found(phalanx, make_jaxpr) == found(peer, peer.make_jaxpr)


def test_a_sum_that_types_know_of_is_bound_by_its_axes_alone():
    def summed(x):
        return operations.psum_invariant_p.bind(x, axes=("i",))[0]

    i, whole = phalanx.P("i"), phalanx.P()
    out = phalanx.shard_map(summed, mesh=mesh(phalanx, "Auto"), in_specs=i, out_specs=whole)(X)
    np.testing.assert_array_equal(out, X[:2] + X[2:])


def test_a_product_left_as_a_sum_says_so_and_is_bound_by_itself():
    def product(x):
        return phalanx.numpy.einsum("ij,ik->jk", x, x, out_sharding=phalanx.P(unreduced={"i"}))

    def bound(x):
        y = first.primitive.bind(x, x, **first.params)
        assert phalanx.typeof(y) == first.outvars[0].aval
        return phalanx.reshard(y, phalanx.P())

    with phalanx.set_mesh(mesh(phalanx, "Explicit")):
        x = phalanx.device_put(X, phalanx.P("i"))
        closed = make_jaxpr(product)(x)
        first = closed.eqns[0]
        assert first.params["out_sharding"].spec.unreduced == {"i"}
        run = phalanx.reshard(eval_jaxpr(closed.jaxpr, closed.consts, x)[0], phalanx.P())
        for y in (phalanx.jit(bound)(x), bound(x), run):
            np.testing.assert_array_equal(y, X.T @ X)
