# FAULTY (e): act_dist returns a softmax and surrogate logs the picked entry; the probability
# underflows to 0 when the logits spread, log_softmax is needed.
from functools import partial
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

N_CELLS, N_MOVES, HORIZON = 7, 3, 24


class Transition(NamedTuple):
    obs: jax.Array
    action: jax.Array
    reward: jax.Array


def init_policy(key, width=16):
    k0, k1 = random.split(key)
    return {
        "w0": random.normal(k0, (N_CELLS, width)) * 0.4,
        "b0": jnp.zeros((width,)),
        "w1": random.normal(k1, (width, N_MOVES)) * 0.4,
        "b1": jnp.zeros((N_MOVES,)),
    }


def act_dist(params, obs):
    h = jnp.tanh(obs @ params["w0"] + params["b0"])
    return nn.softmax(h @ params["w1"] + params["b1"])


def rollout(params, key):
    def tick(carry, k):
        pos = carry
        obs = nn.one_hot(pos, N_CELLS)
        cdf = jnp.cumsum(act_dist(params, obs))
        action = jnp.minimum(jnp.sum(cdf < random.uniform(k)), N_MOVES - 1)
        nxt = jnp.clip(pos + action - 1, 0, N_CELLS - 1)
        return nxt, Transition(obs, action, (nxt == N_CELLS - 1).astype(jnp.float32))

    _, traj = lax.scan(tick, jnp.int32(0), random.split(key, HORIZON))
    return traj


def reward_to_go(rewards, gamma=0.95):
    def back(acc, r):
        acc = r + gamma * acc
        return acc, acc

    return lax.scan(back, jnp.float32(0.0), rewards, reverse=True)[1]


def surrogate(params, traj, returns):
    dist = jax.vmap(jax.vmap(partial(act_dist, params)))(traj.obs)
    picked = jnp.take_along_axis(dist, traj.action[..., None], axis=-1)[..., 0]
    advantage = returns - returns.mean(axis=0, keepdims=True)
    return -jnp.mean(jnp.log(picked) * advantage)


@jax.jit
def improve(params, key):
    trajs = jax.vmap(rollout, in_axes=(None, 0))(params, random.split(key, 16))
    returns = jax.vmap(reward_to_go)(trajs.reward)
    grads = jax.grad(surrogate)(params, trajs, returns)
    new = jax.tree_util.tree_map(lambda p, g: p - 0.5 * g, params, grads)
    return new, trajs.reward.sum(axis=1).mean()


def main():
    root, k = random.split(random.PRNGKey(0))
    params = init_policy(k)
    for _ in range(4):
        root, k = random.split(root)
        params, score = improve(params, k)
        print("score", float(score))


if __name__ == "__main__":
    main()
