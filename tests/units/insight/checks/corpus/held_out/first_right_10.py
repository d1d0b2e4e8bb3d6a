# RIGHT: observation sums and counts are psum-ed before they are stored; advantages are normalized
# over the gathered values
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

AX = "envs"


class Moments(NamedTuple):
    count: object
    total: object
    square: object

    def absorb(self, obs):
        flat = obs.reshape(-1, obs.shape[-1])
        c, s, q = lax.psum((jnp.float32(flat.shape[0]), flat.sum(0), (flat**2).sum(0)), AX)
        return Moments(self.count + c, self.total + s, self.square + q)

    def scale(self, obs):
        m = self.total / self.count
        v = jnp.maximum(self.square / self.count - m**2, 1e-4)
        return (obs - m) / jnp.sqrt(v)


def policy(params, moments, obs):
    h = jnp.tanh(moments.scale(obs) @ params["h"])
    return h @ params["pi"], (h @ params["v"])[..., 0]


def rollout(params, moments, pos, key, length=12):
    def tick(pos, k):
        logits, value = policy(params, moments, pos)
        act = random.categorical(k, logits)
        nxt = 0.95 * pos + 0.2 * (act[:, None] - 1.0)
        return nxt, (pos, act, value, -jnp.sum(nxt**2, -1))

    return lax.scan(tick, pos, random.split(key, length))


def a2c_loss(params, moments, obs, act, adv, ret):
    logits, value = policy(params, moments, obs)
    logp = nn.log_softmax(logits)
    entropy = -jnp.sum(nn.softmax(logits) * logp, axis=-1)
    chosen = jnp.take_along_axis(logp, act[..., None], axis=-1)[..., 0]
    return jnp.mean(-chosen * adv + 0.5 * (value - ret) ** 2 - 0.01 * entropy)


def update(params, moments, pos, key):
    key, sub = random.split(key)
    pos, (obs, act, value, rew) = rollout(params, moments, pos, sub)
    _, ret = lax.scan(lambda g, r: (r + 0.9 * g,) * 2, jnp.zeros_like(rew[0]), rew, reverse=True)
    adv = ret - value
    pool = lax.all_gather(adv, AX)
    adv = (adv - pool.mean()) / (pool.std() + 1e-6)
    grads = jax.grad(a2c_loss)(params, moments, obs, act, adv, ret)
    params = jax.tree.map(lambda p, g: p - 0.05 * lax.pmean(g, AX), params, grads)
    return params, moments.absorb(obs), pos, key, lax.pmean(rew.mean(), AX)


def main():
    n = jax.local_device_count()
    k = random.split(random.PRNGKey(1), 3)
    params = {
        "h": random.normal(k[0], (2, 16)),
        "pi": 0.01 * random.normal(k[1], (16, 3)),
        "v": jnp.zeros((16, 1)),
    }
    moments = Moments(jnp.float32(1.0), jnp.zeros(2), jnp.ones(2))
    step = jax.pmap(
        update, axis_name=AX, in_axes=(None, None, 0, 0), out_axes=(None, None, 0, 0, None)
    )
    pos, keys = random.normal(k[2], (n, 6, 2)), random.split(random.PRNGKey(9), n)
    for it in range(5):
        params, moments, pos, keys, reward = step(params, moments, pos, keys)
        print(it, "reward", float(reward), "seen", float(moments.count))


if __name__ == "__main__":
    main()
