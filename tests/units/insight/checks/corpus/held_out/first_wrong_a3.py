# FAULTY (a): total over lanes of gradients of a lane-mean policy loss, while the statistics shown
# are averaged
import dataclasses
from functools import partial

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

tmap = jax.tree_util.tree_map


@dataclasses.dataclass(frozen=True)
class Config:
    lr: float = 0.1
    horizon: int = 10
    envs: int = 8
    clip: float = 0.2
    epochs: int = 2


def total(tree, axis):
    return tmap(partial(lax.psum, axis_name=axis), tree)


def log_probs(theta, s):
    return nn.log_softmax(jnp.tanh(s @ theta["l1"]) @ theta["l2"])


def collect(cfg, theta, s, key):
    def tick(s, k):
        k1, k2 = random.split(k)
        lp = log_probs(theta, s)
        a = random.categorical(k1, lp)
        r = jnp.where(a == (s[:, 0] > 0), 1.0, 0.0)
        old = jnp.take_along_axis(lp, a[:, None], 1)[:, 0]
        return random.normal(k2, s.shape), (s, a, old, r)

    return lax.scan(tick, s, random.split(key, cfg.horizon))


def surrogate(theta, cfg, traj):
    s, a, old, r = traj
    new = jnp.take_along_axis(log_probs(theta, s), a[..., None], -1)[..., 0]
    ratio = jnp.exp(new - old)
    adv = r - 0.5
    gain = jnp.minimum(ratio * adv, jnp.clip(ratio, 1 - cfg.clip, 1 + cfg.clip) * adv)
    return -gain.mean(), {"reward": r.mean(), "kl": (old - new).mean()}


def make_iteration(cfg):
    def iteration(theta, s, key):
        key, sub = random.split(key)
        s, traj = collect(cfg, theta, s, sub)

        def one_epoch(theta, _):
            (loss, info), g = jax.value_and_grad(surrogate, has_aux=True)(theta, cfg, traj)
            g = total(g, "learners")
            theta = tmap(lambda p, d: p - cfg.lr * d, theta, g)
            return theta, lax.pmean({"loss": loss, **info}, "learners")

        theta, info = lax.scan(one_epoch, theta, None, length=cfg.epochs)
        return theta, s, key, tmap(lambda v: v[-1], info)

    return jax.pmap(iteration, axis_name="learners")


def main():
    n, cfg = jax.local_device_count(), Config()
    k1, k2, k3 = random.split(random.PRNGKey(4), 3)
    theta = {"l1": random.normal(k1, (3, 16)), "l2": 0.01 * random.normal(k2, (16, 2))}
    theta = tmap(lambda a: jnp.broadcast_to(a, (n,) + a.shape), theta)
    s, keys = random.normal(k3, (n, cfg.envs, 3)), random.split(random.PRNGKey(5), n)
    step = make_iteration(cfg)
    for it in range(5):
        theta, s, keys, info = step(theta, s, keys)
        print(it, {k: float(v[0]) for k, v in info.items()})


if __name__ == "__main__":
    main()
