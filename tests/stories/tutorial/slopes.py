"""Training in lanes: each has a part of the data, and all take the same step."""

from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

n, per_lane = 4, 16
draw = np.random.default_rng(0)
x = draw.normal(size=(n, per_lane, 3)).astype(np.float32)
y = (x @ np.float32([2.0, -1.0, 0.5]) + 0.25).astype(np.float32)


def loss(model, x, y):
    return jnp.mean((x @ model["w"] + model["b"] - y) ** 2)


@partial(jax.pmap, axis_name="data", in_axes=(None, 0, 0), out_axes=(None, None))
def step(model, x, y):
    value, slopes = jax.value_and_grad(loss)(model, x, y)
    slopes = lax.pmean(slopes, "data")
    return jax.tree.map(lambda p, s: p - 0.2 * s, model, slopes), lax.pmean(value, "data")


model = {"w": jnp.zeros(3), "b": jnp.float32(0)}
by_hand = {"w": np.zeros(3), "b": 0.0}
flat_x, flat_y = x.reshape(-1, 3).astype(float), y.ravel().astype(float)
losses = []
for _ in range(60):
    model, value = step(model, x, y)
    losses.append(float(value))
    wrong = flat_x @ by_hand["w"] + by_hand["b"] - flat_y
    by_hand["w"] = by_hand["w"] - 0.2 * 2 * flat_x.T @ wrong / len(wrong)
    by_hand["b"] = by_hand["b"] - 0.2 * 2 * wrong.mean()
print(losses[0], losses[-1], model)
np.testing.assert_allclose(model["w"], by_hand["w"], atol=1e-5)
np.testing.assert_allclose(model["b"], by_hand["b"], atol=1e-5)
assert losses[-1] < 1e-6 < losses[0]

# the gradient of a function over lanes is that of the whole
total = jax.pmap(lambda v: lax.psum(v**3, "i"), axis_name="i", out_axes=None)
np.testing.assert_allclose(jax.grad(total)(jnp.arange(4.0)), 3 * np.arange(4.0) ** 2)
