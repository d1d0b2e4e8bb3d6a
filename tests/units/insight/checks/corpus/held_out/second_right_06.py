# RIGHT (near e): scaled forward algorithm; softmax gives the transition matrix, which is used as
# probabilities, and the log is of a normaliser summed over all states with the scale put back.
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

K = 3


class HMM(NamedTuple):
    start_logits: jax.Array
    trans_logits: jax.Array
    mean: jax.Array
    log_scale: jax.Array


def emission_logprob(hmm, y):
    z = (y[:, None] - hmm.mean) * jnp.exp(-hmm.log_scale)
    return -0.5 * z**2 - hmm.log_scale - 0.5 * jnp.log(2 * jnp.pi)


def filter_step(matrix, belief_loglik, log_b):
    belief, loglik = belief_loglik
    top = lax.stop_gradient(log_b.max())
    joint = (belief @ matrix) * jnp.exp(log_b - top)
    scale = jnp.sum(joint)
    belief = joint / jnp.maximum(scale, 1e-30)
    loglik = loglik + jnp.log(jnp.maximum(scale, 1e-30)) + top
    return (belief, loglik), belief


def marginal(hmm, y):
    matrix = 0.99 * nn.softmax(hmm.trans_logits, axis=-1) + 0.01 / K
    prior = nn.softmax(hmm.start_logits)
    log_b = emission_logprob(hmm, y)
    body = lambda c, b: filter_step(matrix, c, b)
    (_, loglik), beliefs = lax.scan(body, (prior, jnp.float32(0.0)), log_b)
    return loglik, beliefs


def negative(hmm, ys):
    loglik, _ = jax.vmap(lambda y: marginal(hmm, y))(ys)
    return -loglik.sum() / ys.size


def synthesize(key, n, t):
    k_state, k_noise = random.split(key)
    hops = random.bernoulli(k_state, 0.15, (n, t)).astype(jnp.int32)
    states = jnp.cumsum(hops, axis=1) % K
    return 2.0 * states - 2.0 + 0.4 * random.normal(k_noise, (n, t))


def main():
    ys = synthesize(random.PRNGKey(10), 8, 30)
    hmm = HMM(jnp.zeros(K), 1.5 * jnp.eye(K), jnp.array([-1.0, 0.1, 1.2]), jnp.zeros(K))
    value_and_grad = jax.jit(jax.value_and_grad(negative))
    for _ in range(5):
        value, g = value_and_grad(hmm, ys)
        hmm = jax.tree_util.tree_map(lambda a, b: a - 0.3 * b, hmm, g)
        print(float(value))
    print("means", hmm.mean)


if __name__ == "__main__":
    main()
