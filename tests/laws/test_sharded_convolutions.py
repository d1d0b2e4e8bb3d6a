"""Convolutions over a mesh, and their gradients, equal those on one device, however they lie."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.sharding import AxisType, NamedSharding

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 2 x 2")

CASES = {
    "channels and space": (P(None, "x", "y"), P(), {}),
    "channels of the kernel, and space": (P(None, None, "y"), P(None, "x"), {}),
    "features that several axes cut": (P(None, "y", "x"), P(("z", "y")), {"rhs_dilation": (2,)}),
    "space": (P(None, None, "x"), P(), {"padding": "VALID"}),
    "batch, of groups": (P("x"), P(), {"feature_group_count": 4}),
}


@pytest.mark.parametrize(
    ("case", "kind"),
    [*[(case, AxisType.Explicit) for case in CASES], ("batch, of groups", AxisType.Auto)],
)
def test_convolutions(case, kind):
    *specs, how = CASES[case]
    how = {"window_strides": (1,), "padding": "SAME", **how}
    source = np.random.default_rng(0)
    x = source.normal(size=(4, 4, 8)).astype("f")
    kernel = source.normal(size=(4, 4 // how.get("feature_group_count", 1), 3)).astype("f")

    def total(x, kernel):
        y = lax.conv_general_dilated(x, kernel, **how)
        return (y**2).sum(), y

    slopes = phalanx.grad(total, (0, 1), has_aux=True)
    mesh = phalanx.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(kind,) * 3)
    cut = [
        phalanx.device_put(v, NamedSharding(mesh, s))
        for v, s in zip((x, kernel), specs, strict=True)
    ]
    made = phalanx.tree.leaves(phalanx.jit(slopes)(*cut))
    for got, right in zip(made, phalanx.tree.leaves(slopes(x, kernel)), strict=True):
        np.testing.assert_allclose(jnp.asarray(got), right, rtol=1e-4, atol=1e-4)
