# FAULTY (d): the observation normalizer is updated from the lane's own observations, although it
# is returned as one replicated value
import functools

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random


def rms_init(dim):
    return {"mean": jnp.zeros(dim), "m2": jnp.ones(dim), "count": jnp.asarray(1.0)}


def rms_update(rms, batch):
    batch = batch.reshape(-1, batch.shape[-1])
    b_count = batch.shape[0]
    b_mean = batch.mean(axis=0)
    b_m2 = ((batch - b_mean) ** 2).sum(axis=0)
    delta = b_mean - rms["mean"]
    total = rms["count"] + b_count
    mean = rms["mean"] + delta * b_count / total
    m2 = rms["m2"] + b_m2 + delta**2 * rms["count"] * b_count / total
    return {"mean": mean, "m2": m2, "count": total}


def rms_apply(rms, obs):
    std = jnp.sqrt(rms["m2"] / rms["count"])
    return jnp.clip((obs - rms["mean"]) / (std + 1e-6), -5.0, 5.0)


def act(theta, rms, obs, key):
    mu = rms_apply(rms, obs) @ theta["w"] + theta["b"]
    return mu + 0.3 * random.normal(key, mu.shape)


def env_step(x, u, gain):
    x = x + 0.1 * jnp.concatenate([x[:, 1:], gain * u], axis=1)
    return x, -jnp.sum(x * x, axis=1) - 0.01 * u[:, 0] ** 2


def unroll(theta, rms, x, gain, key):
    def tick(x, k):
        u = act(theta, rms, x, k)
        nxt, r = env_step(x, u, gain)
        return nxt, (x, u, r)

    return lax.scan(tick, x, random.split(key, 8))


def reinforce(theta, rms, obs, u, weight):
    mu = rms_apply(rms, obs) @ theta["w"] + theta["b"]
    return jnp.mean(0.5 * jnp.sum(((u - mu) / 0.3) ** 2, -1) * weight)


@functools.partial(
    jax.pmap, axis_name="w", in_axes=(None, None, 0, 0, 0), out_axes=(None, None, 0, None)
)
def iterate(theta, rms, x, gain, key):
    x, (obs, u, r) = unroll(theta, rms, x, gain, key)
    togo = jnp.cumsum(r[::-1], axis=0)[::-1]
    baseline = lax.pmean(togo.mean(axis=1, keepdims=True), "w")
    grads = jax.grad(reinforce)(theta, rms, obs, u, togo - baseline)
    grads = lax.pmean(grads, "w")
    theta = jax.tree_util.tree_map(lambda p, g: p - 1e-4 * g, theta, grads)
    rms = rms_update(rms, obs)
    return theta, rms, x, lax.pmean(r.mean(), "w")


def main():
    n = jax.local_device_count()
    theta, rms = {"w": jnp.zeros((3, 1)), "b": jnp.zeros(1)}, rms_init(3)
    gain = jnp.linspace(0.5, 2.0, n)
    for it in range(5):
        kx, ku = random.split(random.PRNGKey(it))
        x = random.normal(kx, (n, 6, 3)) * gain[:, None, None]
        theta, rms, x, reward = iterate(theta, rms, x, gain, random.split(ku, n))
        print(it, "reward", float(reward), "obs mean", [round(float(v), 3) for v in rms["mean"]])


if __name__ == "__main__":
    main()
