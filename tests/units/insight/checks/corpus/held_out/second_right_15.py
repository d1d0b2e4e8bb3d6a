# RIGHT (near k1/k3 and n3): the key lives in the state and is split on each step into one per use;
# x*log(x) is guarded on the inside as well as on the outside.
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

PIXELS, LATENT, BATCH = 16, 3, 20


class VAEState(NamedTuple):
    weights: dict
    rng: jax.Array


def create(rng):
    rng, a, b, c, d = random.split(rng, 5)
    weights = {
        "enc": random.normal(a, (PIXELS, 24)) * PIXELS**-0.5,
        "stats": random.normal(b, (24, 2 * LATENT)) * 24**-0.5,
        "dec": random.normal(c, (LATENT, 24)) * LATENT**-0.5,
        "pix": random.normal(d, (24, PIXELS)) * 24**-0.5,
    }
    return VAEState(weights, rng)


def encode(w, x, rng):
    h = nn.relu(x @ w["enc"])
    h = h * random.bernoulli(rng, 0.9, h.shape) / 0.9
    return jnp.split(h @ w["stats"], 2, axis=-1)


def xlogx(p):
    positive = p > 0
    inner = jnp.where(positive, p, 1.0)
    return jnp.where(positive, p * jnp.log(inner), 0.0)


def usage_entropy(mu):
    share = nn.relu(mu).mean(axis=0)
    share = share / (share.sum() + 1e-6)
    return -xlogx(share).sum()


def free_energy(w, x, rng):
    k_drop, k_z = random.split(rng)
    mu, log_var = encode(w, x, k_drop)
    z = mu + jnp.exp(0.5 * log_var) * random.normal(k_z, mu.shape)
    logits = nn.relu(z @ w["dec"]) @ w["pix"]
    bce = jnp.sum(nn.softplus(logits) - x * logits, axis=-1)
    kl = 0.5 * jnp.sum(jnp.exp(log_var) + mu**2 - 1.0 - log_var, axis=-1)
    return (bce + kl).mean() - 0.01 * usage_entropy(mu), kl.mean()


def epoch(state, data):
    rng, k_perm, k_batches = random.split(state.rng, 3)
    order = random.permutation(k_perm, data.shape[0]).reshape(-1, BATCH)

    def step(w, inputs):
        index, k = inputs
        (value, kl), g = jax.value_and_grad(free_energy, has_aux=True)(w, data[index], k)
        return jax.tree_util.tree_map(lambda p, d: p - 0.02 * d, w, g), (value, kl)

    keys = random.split(k_batches, order.shape[0])
    w, (values, kls) = lax.scan(step, state.weights, (order, keys))
    return VAEState(w, rng), values.mean(), kls.mean()


def main():
    k_state, k_data = random.split(random.PRNGKey(111))
    state = create(k_state)
    data = (random.uniform(k_data, (60, PIXELS)) < jnp.linspace(0.1, 0.9, PIXELS)).astype(
        jnp.float32
    )
    run_epoch = jax.jit(epoch)
    for _ in range(3):
        state, value, kl = run_epoch(state, data)
        print(float(value), float(kl))


if __name__ == "__main__":
    main()
