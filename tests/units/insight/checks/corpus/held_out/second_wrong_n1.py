# FAULTY (n): sqrt of an exact zero on the diagonal is differentiated before the where masks it
# out; its infinite slope times zero makes every force NaN.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random


def pairwise(pos):
    delta = pos[:, None, :] - pos[None, :, :]
    return jnp.sqrt(jnp.sum(delta * delta, axis=-1))


def energy(pos, charge, stiffness=0.5):
    n = pos.shape[0]
    same = jnp.eye(n, dtype=bool)
    r = pairwise(pos)
    repulsion = jnp.where(same, 0.0, charge[:, None] * charge[None, :] / (r + 0.1))
    trap = 0.5 * stiffness * jnp.sum(pos**2)
    return 0.5 * jnp.sum(repulsion) + trap


def acceleration(pos, charge, mass):
    return -jax.grad(energy)(pos, charge) / mass[:, None]


def verlet(dt, charge, mass):
    def step(carry, _):
        pos, vel, acc = carry
        pos = pos + vel * dt + 0.5 * acc * dt**2
        new_acc = acceleration(pos, charge, mass)
        vel = vel + 0.5 * (acc + new_acc) * dt
        kinetic = 0.5 * jnp.sum(mass[:, None] * vel**2)
        return (pos, vel, new_acc), kinetic + energy(pos, charge)

    return step


@jax.jit
def simulate(pos, vel, charge, mass):
    start = (pos, vel, acceleration(pos, charge, mass))
    (pos, vel, _), trace = lax.scan(verlet(0.01, charge, mass), start, None, length=20)
    return pos, trace


def main():
    k_pos, k_mass = random.split(random.PRNGKey(1))
    pos = random.normal(k_pos, (6, 3)) * 2.0
    mass = random.uniform(k_mass, (6,), minval=0.5, maxval=2.0)
    charge = jnp.ones((6,))
    pos, trace = simulate(pos, jnp.zeros_like(pos), charge, mass)
    print("energy", trace[0], trace[-1])


if __name__ == "__main__":
    main()
