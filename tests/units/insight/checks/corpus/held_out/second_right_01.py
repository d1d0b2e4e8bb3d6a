# RIGHT (near e1): probabilities are made by softmax only to sample and to weigh; every logarithm
# comes from log_softmax, also the entropy.
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

ARMS, CONTEXT = 4, 5


class Experience(NamedTuple):
    context: jax.Array
    arm: jax.Array
    payoff: jax.Array
    behaviour: jax.Array


def logits_of(theta, c):
    return jnp.tanh(c @ theta["hidden"]) @ theta["out"]


def probabilities(theta, c):
    return nn.softmax(logits_of(theta, c), axis=-1)


def entropy(theta, c):
    logp = nn.log_softmax(logits_of(theta, c), axis=-1)
    return -jnp.sum(probabilities(theta, c) * logp, axis=-1)


def interact(theta, truth, key, n):
    k_context, k_arm, k_pay = random.split(key, 3)
    c = random.normal(k_context, (n, CONTEXT))
    logits = logits_of(theta, c)
    arm = random.categorical(k_arm, logits)
    mean_pay = jnp.take_along_axis(c @ truth, arm[:, None], axis=1)[:, 0]
    payoff = mean_pay + 0.1 * random.normal(k_pay, (n,))
    behaviour = jnp.take_along_axis(nn.log_softmax(logits), arm[:, None], axis=1)[:, 0]
    return Experience(c, arm, payoff, behaviour)


def clipped_objective(theta, xp, beta=0.01):
    logp = nn.log_softmax(logits_of(theta, xp.context))
    logp = jnp.take_along_axis(logp, xp.arm[:, None], axis=1)[:, 0]
    ratio = jnp.exp(logp - xp.behaviour)
    adv = (xp.payoff - xp.payoff.mean()) / (xp.payoff.std() + 1e-6)
    gain = jnp.minimum(ratio * adv, jnp.clip(ratio, 0.8, 1.2) * adv)
    return -jnp.mean(gain) - beta * jnp.mean(entropy(theta, xp.context))


def train(theta, truth, key):
    def iteration(carry, k):
        xp = interact(carry, truth, k, 64)

        def epoch(th, _):
            loss, g = jax.value_and_grad(clipped_objective)(th, xp)
            return jax.tree_util.tree_map(lambda p, d: p - 0.3 * d, th, g), loss

        carry, losses = lax.scan(epoch, carry, None, length=3)
        return carry, (losses[-1], xp.payoff.mean())

    return lax.scan(iteration, theta, random.split(key, 5))


def main():
    k_h, k_o, k_true, k_train = random.split(random.PRNGKey(4), 4)
    theta = {
        "hidden": random.normal(k_h, (CONTEXT, 16)) * 0.5,
        "out": random.normal(k_o, (16, ARMS)) * 0.3,
    }
    truth = random.normal(k_true, (CONTEXT, ARMS))
    theta, (losses, payoffs) = jax.jit(train)(theta, truth, k_train)
    print(losses, payoffs)


if __name__ == "__main__":
    main()
