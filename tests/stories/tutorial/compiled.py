"""pmap and jit within each other, and a loop that is compiled once."""

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

n = 4
traced = []


@jax.jit
def smooth(x):
    traced.append(x.shape)
    return (x + jnp.roll(x, 1) + jnp.roll(x, -1)) / 3


grid = np.random.default_rng(1).random((n, 6), np.float32)
wanted = (grid + np.roll(grid, 1, 1) + np.roll(grid, -1, 1)) / 3
for _ in range(3):
    np.testing.assert_allclose(jax.pmap(smooth)(grid), wanted, rtol=1e-6)
assert len(traced) == 1


def often(x):
    return lax.fori_loop(0, 200, lambda _, x: smooth(x), x)


mean = jax.jit(lambda x: jax.pmap(lambda r: lax.pmean(often(r), "i"), "i", out_axes=None)(x))
np.testing.assert_allclose(mean(grid), np.full(6, grid.mean()), rtol=1e-4)
assert "stablehlo" in mean.lower(grid).as_text()
