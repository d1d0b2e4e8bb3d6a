# RIGHT (near n1): the distance is made safe before the square root (double where), so the diagonal
# contributes neither value nor NaN to the forces.
import dataclasses
from functools import partial

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random


@dataclasses.dataclass(frozen=True)
class LennardJones:
    depth: float = 1.0
    radius: float = 1.0
    cutoff: float = 3.0
    box: float = 6.0

    def displacement(self, a, b):
        d = a - b
        return d - self.box * jnp.round(d / self.box)

    def pair(self, r):
        s6 = (self.radius / r) ** 6
        return 4.0 * self.depth * (s6 * s6 - s6)

    def energy(self, x):
        d = jax.vmap(lambda a: jax.vmap(lambda b: self.displacement(a, b))(x))(x)
        r2 = jnp.sum(d**2, axis=-1)
        counted = (r2 > 0.0) & (r2 < self.cutoff**2)
        r = jnp.sqrt(jnp.where(counted, r2, 1.0))
        return 0.5 * jnp.sum(jnp.where(counted, self.pair(r), 0.0))


@partial(jax.jit, static_argnums=0)
def langevin(model, x, key, dt=1e-3, friction=1.0, temperature=0.1):
    def step(carry, noise):
        x, v = carry
        f = -jax.grad(model.energy)(x)
        kick = jnp.sqrt(2.0 * friction * temperature * dt) * noise
        v = v + dt * (f - friction * v) + kick
        x = jnp.mod(x + dt * v, model.box)
        return (x, v), model.energy(x)

    noise = random.normal(key, (25,) + x.shape)
    (x, v), e = lax.scan(step, (x, jnp.zeros_like(x)), noise)
    return x, v, e


def main():
    side = jnp.arange(3) * 2.0
    grid = jnp.stack(jnp.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    k_jitter, k_run = random.split(random.PRNGKey(17))
    x = grid + 0.1 * random.uniform(k_jitter, grid.shape)
    x, v, e = langevin(LennardJones(), x, k_run)
    print("energy", e[0], e[-1], "temperature", jnp.mean(v**2))


if __name__ == "__main__":
    main()
