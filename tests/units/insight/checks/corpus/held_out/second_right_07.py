# RIGHT (near k2): one key is broadcast to all lanes, but folded with the step and with the lane's
# index before any draw.
import functools
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

D = 8


class State(NamedTuple):
    params: dict
    step: jax.Array


def corrupt(key, x, rate=0.25):
    k_keep, k_noise = random.split(key)
    keep = random.bernoulli(k_keep, 1 - rate, x.shape)
    return jnp.where(keep, x, 0.0) + 0.05 * random.normal(k_noise, x.shape)


def autoencode(params, x):
    h = nn.elu(x @ params["enc"] + params["benc"])
    return h @ params["dec"] + params["bdec"]


def reconstruction(params, x, key):
    k_in, k_hid = random.split(key)
    h = nn.elu(corrupt(k_in, x) @ params["enc"] + params["benc"])
    mask = random.bernoulli(k_hid, 0.8, h.shape)
    out = jnp.where(mask, h / 0.8, 0.0) @ params["dec"] + params["bdec"]
    return jnp.mean((out - x) ** 2)


@functools.partial(jax.pmap, axis_name="i", in_axes=(0, 0, None), out_axes=(0, 0))
def step(state, x, base):
    key = random.fold_in(base, state.step)
    key = random.fold_in(key, lax.axis_index("i"))
    loss, g = jax.value_and_grad(reconstruction)(state.params, x, key)
    g = lax.pmean(g, "i")
    params = jax.tree_util.tree_map(lambda p, d: p - 0.1 * d, state.params, g)
    return State(params, state.step + 1), lax.pmean(loss, "i")


def main():
    k_enc, k_dec, k_x, base = random.split(random.PRNGKey(12), 4)
    params = {
        "enc": random.normal(k_enc, (10, 16)) * 10**-0.5,
        "benc": jnp.zeros(16),
        "dec": random.normal(k_dec, (16, 10)) * 0.25,
        "bdec": jnp.zeros(10),
    }
    state = State(params, jnp.int32(0))
    state = jax.tree_util.tree_map(lambda a: jnp.stack([a] * D), state)
    x = random.normal(k_x, (D, 8, 10))
    for _ in range(4):
        state, loss = step(state, x, base)
        print(float(loss[0]))
    final = jax.tree_util.tree_map(lambda a: a[0], state.params)
    print("clean", float(jnp.mean((autoencode(final, x.reshape(-1, 10)) - x.reshape(-1, 10)) ** 2)))


if __name__ == "__main__":
    main()
