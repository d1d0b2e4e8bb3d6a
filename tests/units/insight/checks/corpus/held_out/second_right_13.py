# RIGHT (near n2): the cosine is clipped strictly inside (-1, 1) before arccos, and lengths have an
# epsilon below the root, so equal points give finite gradients.
import functools

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random

MARGIN = 1e-6


def to_sphere(v):
    return v / jnp.sqrt(jnp.sum(v**2, axis=-1, keepdims=True) + 1e-12)


def great_circle(u, v):
    c = jnp.clip(u @ v, -1.0 + MARGIN, 1.0 - MARGIN)
    return jnp.arccos(c)


all_pairs = jax.vmap(jax.vmap(great_circle, (None, 0)), (0, None))


def stress(free, wanted, weight):
    d = all_pairs(to_sphere(free), to_sphere(free))
    return jnp.sum(weight * (d - wanted) ** 2) / jnp.sum(weight)


def tangent(free, g):
    return g - jnp.sum(g * free, axis=-1, keepdims=True) * free


@functools.partial(jax.jit, static_argnames=("n_steps",))
def embed(free, wanted, weight, n_steps, rate=0.4):
    def step(free, _):
        value, g = jax.value_and_grad(stress)(free, wanted, weight)
        g = tangent(free, g)
        length = jnp.sqrt(jnp.sum(g * g) + 1e-10)
        return to_sphere(free - rate * g / jnp.maximum(length, 1.0)), value

    return lax.scan(step, free, None, length=n_steps)


def main():
    k_places, k_start = random.split(random.PRNGKey(91))
    places = to_sphere(random.normal(k_places, (10, 3)))
    wanted = all_pairs(places, places)
    weight = 1.0 - jnp.eye(10)
    free = to_sphere(places + 0.4 * random.normal(k_start, places.shape))
    free = free.at[1].set(free[0])
    free, values = embed(free, wanted, weight, n_steps=12)
    print(values[::4], jnp.isfinite(free).all())


if __name__ == "__main__":
    main()
