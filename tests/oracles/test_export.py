"""Modules that we export run where others run theirs."""

import jax
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.export import export

X = np.linspace(-0.9, 0.9, 6, dtype=np.float32).reshape(2, 3)


def peer_of(made):
    """The same module as the peer holds those that it exports."""

    def kinds(types):
        return tuple([jax.core.ShapedArray(t.shape, t.dtype) for t in types])

    own = jax.export.export(jax.jit(lambda *xs: xs))(*kinds(made.in_avals))
    flat = jax.tree.structure(((0,) * len(made.in_avals), {}))
    return jax.export.Exported(
        **{**vars(own), "in_tree": flat, "in_avals": kinds(made.in_avals),
           "out_tree": jax.tree.structure((0,) * len(made.out_avals)),
           "out_avals": kinds(made.out_avals), "platforms": made.platforms,
           "nr_devices": made.nr_devices, "module_kept_var_idx": made.module_kept_var_idx,
           "uses_global_constants": made.uses_global_constants,
           "out_shardings_hlo": (None,) * len(made.out_avals),
           "_out_named_shardings": (None,) * len(made.out_avals),
           "mlir_module_serialized": made.mlir_module_serialized}
    )  # fmt: skip


@pytest.mark.parametrize("platforms", [["cpu"], ["tpu", "cpu", "cuda"]])
def test_the_peer_runs_our_modules(platforms):
    def f(x):
        per_platform = phalanx.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
        return jnp.sort(x @ x.T), phalanx.scipy.special.erfinv(x), per_platform

    made = export(phalanx.jit(f), platforms=platforms)(X)
    for ours, theirs in zip(f(X), peer_of(made).call(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.spmd
@pytest.mark.skipif(phalanx.device_count() < 2, reason="one device")
def test_the_peer_runs_our_modules_over_several_devices():
    mesh, grid = (m.make_mesh((2,), ("a",)) for m in (phalanx, jax))
    rows = phalanx.NamedSharding(mesh, phalanx.P("a"))
    each = phalanx.shard_map(
        lambda x: phalanx.lax.psum(jnp.sin(x), "a"),
        mesh=mesh,
        in_specs=rows.spec,
        out_specs=phalanx.P(),
    )
    square = X[:, :2]
    lying = jax.sharding.NamedSharding(grid, jax.P(None, "a"))
    for function in (each, lambda x: phalanx.lax.with_sharding_constraint(x @ x.T, rows)):
        theirs = peer_of(export(phalanx.jit(function, in_shardings=rows))(square))
        (y,) = jax.jit(theirs.call, in_shardings=lying)(square)
        np.testing.assert_allclose(y, function(square), rtol=1e-5)
