# RIGHT (near d2): count, sum and sum of squares of the lane are psum-ed inside a helper before the
# observation statistics are changed, so all lanes hold the same filter.
from functools import partial
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random


class RunningMoments(NamedTuple):
    n: jax.Array
    s1: jax.Array
    s2: jax.Array

    def whiten(self, x):
        mean = self.s1 / self.n
        var = jnp.maximum(self.s2 / self.n - mean**2, 0.0)
        return (x - mean) / jnp.sqrt(var + 1e-6)


class Learner(NamedTuple):
    theta: dict
    moments: RunningMoments
    key: jax.Array


def observe(moments, x, axis_name):
    flat = x.reshape(-1, x.shape[-1])
    local = RunningMoments(jnp.float32(flat.shape[0]), flat.sum(0), jnp.square(flat).sum(0))
    total = jax.tree_util.tree_map(partial(lax.psum, axis_name=axis_name), local)
    return jax.tree_util.tree_map(jnp.add, moments, total)


def pendulum(s, torque):
    angle, speed = s
    speed = speed + 0.05 * (9.8 * jnp.sin(angle) + 3.0 * torque)
    return (angle + 0.05 * speed, speed)


def play(theta, moments, start):
    def body(s, _):
        angle, speed = s
        obs = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed])
        torque = jnp.tanh(moments.whiten(obs) @ theta["w"] + theta["b"])
        s = pendulum(s, torque)
        return s, (obs, 1.0 - jnp.cos(s[0]) + 0.01 * s[1] ** 2)

    return lax.scan(body, start, None, length=15)[1]


@partial(jax.pmap, axis_name="p")
def train(learner):
    key, k_angle, k_speed = random.split(learner.key, 3)
    start = (0.5 * random.normal(k_angle, (6,)), 0.2 * random.normal(k_speed, (6,)))

    def cost(theta):
        obs, c = jax.vmap(partial(play, theta, learner.moments))(start)
        return c.mean(), obs

    (c, obs), g = jax.value_and_grad(cost, has_aux=True)(learner.theta)
    g = lax.pmean(g, "p")
    theta = jax.tree_util.tree_map(lambda p, d: p - 0.1 * d, learner.theta, g)
    moments = observe(learner.moments, lax.stop_gradient(obs), "p")
    return Learner(theta, moments, key), lax.pmean(c, "p")


def main():
    keys = random.split(random.PRNGKey(71), 8)
    theta = {"w": jnp.zeros(3), "b": jnp.zeros(())}
    moments = RunningMoments(jnp.float32(1.0), jnp.zeros(3), jnp.ones(3))
    theta, moments = jax.tree_util.tree_map(lambda a: jnp.stack([a] * 8), (theta, moments))
    learner = Learner(theta, moments, keys)
    for _ in range(4):
        learner, c = train(learner)
        print(float(c[0]), learner.moments.n[0])


if __name__ == "__main__":
    main()
