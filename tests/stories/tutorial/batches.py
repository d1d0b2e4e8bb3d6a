"""vmap inside of pmap: many small problems in each lane, each with its own key."""

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp

n, per_lane = 4, 5
draw = np.random.default_rng(2)
left = draw.normal(size=(n, per_lane, 3, 3)).astype(np.float32) + 9 * np.eye(3, dtype=np.float32)
right = draw.normal(size=(n, per_lane, 3)).astype(np.float32)

found = jax.pmap(jax.vmap(jnp.linalg.solve))(left, right)
np.testing.assert_allclose(found, np.linalg.solve(left, right[..., None])[..., 0], atol=1e-5)

keys = jax.random.split(jax.random.key(0), (n, per_lane))
walks = jax.pmap(jax.vmap(lambda key: jnp.cumsum(jax.random.normal(key, (10,)))))(keys)
assert walks.shape == (n, per_lane, 10)
assert len({*np.asarray(walks)[..., -1].ravel().tolist()}) == n * per_lane
again = jax.vmap(jax.vmap(lambda key: jnp.cumsum(jax.random.normal(key, (10,)))))(keys)
np.testing.assert_allclose(walks, again, rtol=1e-5, atol=1e-6)

slopes = jax.pmap(jax.vmap(jax.grad(lambda v: jnp.sum(v**2) / 2)))(right)
np.testing.assert_allclose(slopes, right, rtol=1e-6)
