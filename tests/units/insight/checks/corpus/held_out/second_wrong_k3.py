# FAULTY (k): the acceptance draw reuses the key with which the momenta were already drawn, so
# acceptance is not independent of the proposal.
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random


class Chain(NamedTuple):
    position: jax.Array
    key: jax.Array
    accepted: jax.Array


def potential(q):
    x, y = q
    return 0.5 * x**2 + 0.5 * (y - 0.5 * x**2) ** 2 / 0.3


def leapfrog(q, p, step_size, n_leaps):
    force = jax.grad(potential)

    def leap(_, qp):
        q, p = qp
        p = p - 0.5 * step_size * force(q)
        q = q + step_size * p
        p = p - 0.5 * step_size * force(q)
        return q, p

    return lax.fori_loop(0, n_leaps, leap, (q, p))


def transition(chain, _):
    carry_key, key = random.split(chain.key)
    p0 = random.normal(key, chain.position.shape)
    q1, p1 = leapfrog(chain.position, p0, 0.15, 8)
    h0 = potential(chain.position) + 0.5 * jnp.sum(p0**2)
    h1 = potential(q1) + 0.5 * jnp.sum(p1**2)
    log_u = -random.exponential(key)
    take = log_u < h0 - h1
    q = jnp.where(take, q1, chain.position)
    return Chain(q, carry_key, chain.accepted + take), q


@jax.jit
def sample(keys, starts):
    def one(key, q):
        last, draws = lax.scan(transition, Chain(q, key, jnp.int32(0)), None, length=50)
        return draws, last.accepted / 50

    return jax.vmap(one)(keys, starts)


def main():
    k_start, k_chains = random.split(random.PRNGKey(8))
    starts = random.normal(k_start, (6, 2))
    draws, rate = sample(random.split(k_chains, 6), starts)
    print("acceptance", rate)
    print("mean", draws[:, 10:].mean(axis=(0, 1)))


if __name__ == "__main__":
    main()
