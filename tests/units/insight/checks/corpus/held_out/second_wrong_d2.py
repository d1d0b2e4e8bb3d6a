# FAULTY (d): the observation normaliser is merged with the moments of the lane's own environments
# only, while policies are kept in sync; count, mean and m2 should be combined over lanes.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax
from phalanx import random as jr

AX = "workers"


def fresh_filter(dim):
    return {"count": jnp.float32(1e-4), "mean": jnp.zeros(dim), "m2": jnp.zeros(dim)}


def merge(f, xs):
    n = xs.shape[0]
    mean = xs.mean(axis=0)
    m2 = jnp.sum((xs - mean) ** 2, axis=0)
    delta = mean - f["mean"]
    total = f["count"] + n
    return {
        "count": total,
        "mean": f["mean"] + delta * n / total,
        "m2": f["m2"] + m2 + delta**2 * f["count"] * n / total,
    }


def normalise(f, obs):
    return jnp.clip((obs - f["mean"]) / jnp.sqrt(f["m2"] / f["count"] + 1e-4), -5.0, 5.0)


def dynamics(s, u):
    pos, vel = s[..., 0], s[..., 1]
    vel = 0.98 * vel + 0.1 * jnp.tanh(u) - 0.05 * pos
    return jnp.stack([pos + 0.1 * vel, vel], axis=-1)


def unroll(theta, f, s0, noise):
    def step(s, eps):
        u = normalise(f, s) @ theta["k"] + theta["b"] + 0.1 * eps
        nxt = dynamics(s, u)
        return nxt, (nxt, jnp.sum(nxt**2, axis=-1) + 0.01 * u**2)

    return lax.scan(step, s0, noise)[1]


def worker(theta, f, key):
    k_s, k_n = jr.split(key)
    s0 = jr.normal(k_s, (4, 2)) * jnp.array([2.0, 0.5])
    noise = jr.normal(k_n, (12, 4))

    def cost(th):
        states, c = unroll(th, lax.stop_gradient(f), s0, noise)
        return c.mean(), states

    (c, states), g = jax.value_and_grad(cost, has_aux=True)(theta)
    g = jax.tree_util.tree_map(lambda a: lax.psum(a, AX) / lax.psum(1, AX), g)
    theta = jax.tree_util.tree_map(lambda p, d: p - 0.05 * d, theta, g)
    f = merge(f, states.reshape(-1, 2))
    return theta, f, lax.pmean(c, AX)


def main():
    step = jax.pmap(worker, axis_name=AX)
    theta = {"k": jnp.zeros((8, 2)), "b": jnp.zeros((8,))}
    f = jax.tree_util.tree_map(lambda a: jnp.repeat(a[None], 8, axis=0), fresh_filter(2))
    key = jr.PRNGKey(77)
    for _ in range(4):
        key, sub = jr.split(key)
        theta, f, c = step(theta, f, jr.split(sub, 8))
        print("cost", float(c[0]))
    print("filter used for deployment", jax.tree_util.tree_map(lambda a: a[0], f))


if __name__ == "__main__":
    main()
