# FAULTY (c): only the gradient norm is averaged over the lanes, the clipped gradients that update
# the shared Q network stay local
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random

GAMMA, ACTIONS = 0.95, 3


class DQN:
    axis = "actors"

    def __init__(self, lr=0.05, tau=0.1, max_norm=1.0):
        self.lr, self.tau, self.max_norm = lr, tau, max_norm
        self.run = jax.pmap(self._run, axis_name=self.axis, static_broadcasted_argnums=(3,))

    def init(self, key):
        a, b = random.split(key)
        online = {"h": random.normal(a, (2, 24)), "o": 0.05 * random.normal(b, (24, ACTIONS))}
        return {"online": online, "target": online}

    @staticmethod
    def q(w, s):
        return jnp.tanh(s @ w["h"]) @ w["o"]

    def td_loss(self, online, target, s, a, r, s2):
        boot = r + GAMMA * jnp.max(self.q(target, s2), axis=-1)
        now = jnp.take_along_axis(self.q(online, s), a[:, None], axis=1)[:, 0]
        return 0.5 * jnp.mean((lax.stop_gradient(boot) - now) ** 2)

    def sample(self, key, s):
        ka, kn = random.split(key)
        a = random.randint(ka, s.shape[:1], 0, ACTIONS)
        s2 = 0.9 * s + 0.1 * (a[:, None] - 1) + 0.05 * random.normal(kn, s.shape)
        return a, -jnp.sum(s2**2, axis=-1), s2

    def _learn(self, carry, key):
        nets, s = carry
        a, r, s2 = self.sample(key, s)
        loss, g = jax.value_and_grad(self.td_loss)(nets["online"], nets["target"], s, a, r, s2)
        gnorm = jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree_util.tree_leaves(g)))
        gnorm = lax.pmean(gnorm, self.axis)
        coef = self.lr * jnp.minimum(1.0, self.max_norm / (gnorm + 1e-6))
        online = jax.tree_util.tree_map(lambda w, d: w - coef * d, nets["online"], g)
        target = jax.tree_util.tree_map(
            lambda t, w: (1 - self.tau) * t + self.tau * w, nets["target"], online
        )
        return ({"online": online, "target": target}, s2), (lax.pmean(loss, self.axis), gnorm)

    def _run(self, nets, s, key, steps):
        key, sub = random.split(key)
        (nets, s), (loss, gnorm) = lax.scan(self._learn, (nets, s), random.split(sub, steps))
        return nets, s, key, loss.mean(), gnorm.mean()


def main():
    n = jax.local_device_count()
    agent = DQN()
    nets = jax.tree_util.tree_map(lambda w: jnp.stack([w] * n), agent.init(random.PRNGKey(0)))
    s = random.normal(random.PRNGKey(1), (n, 8, 2))
    keys = random.split(random.PRNGKey(2), n)
    for it in range(4):
        nets, s, keys, loss, gnorm = agent.run(nets, s, keys, 5)
        print(it, "td", float(loss[0]), "gnorm", float(gnorm[0]))
    greedy = jax.tree_util.tree_map(lambda w: w[0], nets["online"])
    print(agent.q(greedy, jnp.ones((1, 2))).argmax())


if __name__ == "__main__":
    main()
