# FAULTY (e): log of probabilities that another function computed by softmax, which underflows;
# log_softmax is meant
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


class Agent:
    def __init__(self, obs_dim, n_actions, width=16):
        self.shape = (obs_dim, width, n_actions)

    def init(self, key):
        d, h, a = self.shape
        k = random.split(key, 3)
        return {
            "trunk": random.normal(k[0], (d, h)),
            "actor": random.normal(k[1], (h, a)) / 4,
            "value": random.normal(k[2], (h, 1)) / 4,
        }

    def policy_and_value(self, w, obs):
        feats = jnp.tanh(obs @ w["trunk"])
        preferences = 5.0 * feats @ w["actor"]
        return nn.softmax(preferences, axis=-1), jnp.squeeze(feats @ w["value"], -1)

    def sample(self, w, obs, key):
        probs, value = self.policy_and_value(w, obs)
        cum = jnp.cumsum(probs, axis=-1)
        u = random.uniform(key, probs.shape[:-1] + (1,))
        action = jnp.sum(u > cum, axis=-1)
        return jnp.minimum(action, probs.shape[-1] - 1), value


def actor_critic_loss(w, agent, obs, actions, returns):
    probs, values = agent.policy_and_value(w, obs)
    advantage = lax.stop_gradient(returns - values)
    chosen = jnp.take_along_axis(probs, actions[:, None], axis=-1)[:, 0]
    pg = -jnp.mean(jnp.log(chosen) * advantage)
    entropy = -jnp.mean(jnp.sum(probs * jnp.log(probs), axis=-1))
    return pg + 0.5 * jnp.mean((returns - values) ** 2) - 0.01 * entropy


def make_step(agent, lr=0.02):
    def step(w, key):
        key, k1, k2 = random.split(key, 3)
        obs = random.normal(k1, (32, agent.shape[0]))
        actions, _ = agent.sample(w, obs, k2)
        returns = 1.0 - jnp.abs(actions - (obs[:, 0] > 0)).astype(obs.dtype)
        loss, g = jax.value_and_grad(actor_critic_loss)(w, agent, obs, actions, returns)
        g = lax.pmean(g, "rollout")
        w = jax.tree.map(lambda p, d: p - lr * d, w, g)
        return w, key, lax.pmean(loss, "rollout"), lax.pmean(returns.mean(), "rollout")

    return jax.pmap(step, axis_name="rollout")


def main():
    n = jax.local_device_count()
    agent = Agent(4, 3)
    w = jax.tree.map(lambda p: jnp.stack([p] * n), agent.init(random.PRNGKey(0)))
    keys = random.split(random.PRNGKey(1), n)
    step = make_step(agent)
    for it in range(5):
        w, keys, loss, reward = step(w, keys)
        print(it, float(loss[0]), float(reward[0]))


if __name__ == "__main__":
    main()
