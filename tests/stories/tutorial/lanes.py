"""A first pmap: one row of a table for each device, and rows for more lanes than devices."""

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp


def area(sides):
    return sides[0] * sides[1]


n = jax.device_count()
rectangles = jnp.stack([jnp.arange(1.0, n + 1), jnp.full(n, 3.0)], axis=1)
areas = jax.pmap(area)(rectangles)
print(f"{n} devices: {areas}")
assert areas.tolist() == [3.0 * k for k in range(1, n + 1)]
assert areas.devices() == {*jax.devices()}

many = jnp.ones((2 * n + 1, 2)) * jnp.arange(2 * n + 1.0)[:, None]
assert jax.pmap(area)(many).tolist() == [float(k * k) for k in range(2 * n + 1)]

scaled = jax.pmap(lambda x, by: by * x, in_axes=(0, None))(rectangles, 0.5)
np.testing.assert_array_equal(scaled, 0.5 * np.asarray(rectangles))

tree = {"sides": rectangles, "names": (jnp.arange(n),)}
out = jax.pmap(lambda t: {"area": area(t["sides"]), "next": t["names"][0] + 1})(tree)
assert out["area"].tolist() == areas.tolist() and out["next"].tolist() == [*range(1, n + 1)]
