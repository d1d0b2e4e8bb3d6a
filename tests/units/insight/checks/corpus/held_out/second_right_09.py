# RIGHT (near c and d): a deep ensemble, each lane is a member of its own with another
# initialisation, the data are broadcast; members (and their own target scale) are not meant to be
# reduced, only predictions are.
from functools import partial
from typing import NamedTuple

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random

MEMBERS = 8


class Member(NamedTuple):
    params: list
    velocity: list
    scale: jax.Array


def new_member(key):
    k1, k2, k3 = random.split(key, 3)
    params = [
        random.normal(k1, (1, 20)) * 2.0,
        random.uniform(k2, (20,), minval=-3.0, maxval=3.0),
        random.normal(k3, (20, 2)) * 0.2,
    ]
    velocity = [jnp.zeros_like(p) for p in params]
    return Member(params, velocity, jnp.float32(1.0))


def net(params, x):
    w, b, v = params
    out = jnp.tanh(x[:, None] @ w + b) @ v
    return out[:, 0], out[:, 1]


def gaussian_nll(params, x, y):
    mu, log_var = net(params, x)
    log_var = jnp.clip(log_var, -6.0, 3.0)
    err = (y - mu) ** 2
    return 0.5 * jnp.mean(log_var + err * jnp.exp(-log_var)), err.mean()


@partial(jax.pmap, axis_name="member", in_axes=(0, None, None))
def fit(member, x, y):
    def body(m, _):
        (loss, err), g = jax.value_and_grad(gaussian_nll, has_aux=True)(m.params, x, y)
        vel = [0.9 * v + d for v, d in zip(m.velocity, g)]
        params = [p - 0.01 * v for p, v in zip(m.params, vel)]
        return Member(params, vel, 0.95 * m.scale + 0.05 * err), loss

    return lax.scan(body, member, None, length=10)


@partial(jax.pmap, axis_name="member", in_axes=(0, None))
def predict(member, x):
    mu, log_var = net(member.params, x)
    mean = lax.pmean(mu, "member")
    spread = lax.pmean(mu**2 + jnp.exp(jnp.clip(log_var, -6.0, 3.0)), "member") - mean**2
    return mean, spread


def main():
    k_init, k_x, k_y = random.split(random.PRNGKey(55), 3)
    members = jax.vmap(new_member)(random.split(k_init, MEMBERS))
    x = random.uniform(k_x, (40,), minval=-2.0, maxval=2.0)
    y = jnp.sin(2.0 * x) + 0.1 * random.normal(k_y, (40,))
    members, losses = fit(members, x, y)
    mean, spread = predict(members, jnp.linspace(-3.0, 3.0, 7))
    print(losses[:, -1], mean[0], spread[0], members.scale)


if __name__ == "__main__":
    main()
