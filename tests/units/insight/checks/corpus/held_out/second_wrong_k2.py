# FAULTY (k): the key is broadcast (in_axes None) and never folded with the lane's index, so all
# eight lanes draw the same times and the same noise.
import functools
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn

N_DEV = 8


class State(NamedTuple):
    net: dict
    ema: dict
    step: jax.Array


def score_net(net, x, t):
    feats = jnp.concatenate([x, jnp.sin(6.0 * t)[:, None], t[:, None]], axis=-1)
    h = nn.silu(feats @ net["w1"] + net["b1"])
    h = h + nn.silu(h @ net["w2"] + net["b2"])
    return h @ net["w3"]


def dsm(net, x0, t, eps):
    sigma = 0.05 + 0.95 * t
    out = score_net(net, x0 + sigma[:, None] * eps, t)
    return jnp.mean(jnp.sum((sigma[:, None] * out + eps) ** 2, axis=-1))


@functools.partial(jax.pmap, axis_name="lanes", in_axes=(0, 0, None))
def train_step(state, x0, key):
    step_key = jax.random.fold_in(key, state.step)
    k_t, k_eps = jax.random.split(step_key)
    t = jax.random.uniform(k_t, (x0.shape[0],))
    eps = jax.random.normal(k_eps, x0.shape)
    loss, grads = jax.value_and_grad(dsm)(state.net, x0, t, eps)
    loss, grads = lax.pmean((loss, grads), axis_name="lanes")
    net = jax.tree_util.tree_map(lambda p, g: p - 0.02 * g, state.net, grads)
    ema = jax.tree_util.tree_map(lambda e, p: 0.99 * e + 0.01 * p, state.ema, net)
    return State(net, ema, state.step + 1), loss


def init(key, d=2, h=32):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "w1": jax.random.normal(k1, (d + 2, h)) * (d + 2) ** -0.5,
        "b1": jnp.zeros(h),
        "w2": jax.random.normal(k2, (h, h)) * h**-0.5,
        "b2": jnp.zeros(h),
        "w3": jax.random.normal(k3, (h, d)) * h**-0.5,
    }


def main():
    k_init, k_data, k_run = jax.random.split(jax.random.PRNGKey(5), 3)
    net = init(k_init)
    state = State(net, net, jnp.zeros((), jnp.int32))
    state = jax.tree_util.tree_map(lambda a: jnp.stack([a] * N_DEV), state)
    data = jax.random.normal(k_data, (N_DEV, 16, 2)) * jnp.array([1.0, 0.2])
    for _ in range(4):
        state, loss = train_step(state, data, k_run)
        print(float(loss[0]))


if __name__ == "__main__":
    main()
