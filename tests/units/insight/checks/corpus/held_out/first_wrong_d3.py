# FAULTY (d): code counts and sums of the lane's part only are blended into the codebook that all
# lanes are meant to share
from dataclasses import dataclass

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


@dataclass
class Hyper:
    codes: int = 8
    dim: int = 3
    decay: float = 0.9
    beta: float = 0.25
    lr: float = 0.05


def nearest(book, z):
    d = jnp.sum(z**2, 1, keepdims=True) - 2 * z @ book.T + jnp.sum(book**2, 1)
    return jnp.argmin(d, axis=1)


def vq_loss(net, book, x, beta):
    z = jnp.tanh(x @ net["enc"])
    idx = nearest(book, z)
    q = book[idx]
    straight = z + lax.stop_gradient(q - z)
    recon = straight @ net["dec"]
    loss = jnp.mean((recon - x) ** 2) + beta * jnp.mean((z - lax.stop_gradient(q)) ** 2)
    return loss, (z, idx)


def make_train(hp):
    def train(carry, x):
        net, size, total = carry
        book = total / jnp.maximum(size, 1e-3)[:, None]
        (loss, (z, idx)), g = jax.value_and_grad(vq_loss, has_aux=True)(net, book, x, hp.beta)
        loss, g = lax.pmean((loss, g), "chips")
        net = jax.tree.map(lambda p, d: p - hp.lr * d, net, g)
        assign = nn.one_hot(idx, hp.codes)
        size = hp.decay * size + (1 - hp.decay) * assign.sum(0)
        total = hp.decay * total + (1 - hp.decay) * assign.T @ z
        used = lax.pmax(assign.max(0), "chips").sum()
        return (net, size, total), {"loss": loss, "used": used}

    def many(carry, xs):
        return lax.scan(train, carry, xs)

    return jax.pmap(many, axis_name="chips")


def main():
    hp, n = Hyper(), jax.local_device_count()
    ks = random.split(random.PRNGKey(15), 3)
    net = {
        "enc": random.normal(ks[0], (6, hp.dim)) / 2,
        "dec": random.normal(ks[1], (hp.dim, 6)) / 2,
    }
    carry = (
        net,
        jnp.ones(hp.codes),
        random.uniform(ks[2], (hp.codes, hp.dim), minval=-1.0, maxval=1.0),
    )
    carry = jax.tree.map(lambda a: jnp.broadcast_to(a, (n,) + a.shape), carry)
    step = make_train(hp)
    rng = np.random.default_rng(3)
    basis = rng.normal(size=(4, 6))
    for it in range(3):
        which = rng.integers(0, 4, size=(n, 5, 16))
        xs = (basis[which] + 0.1 * rng.normal(size=(n, 5, 16, 6))).astype(np.float32)
        carry, logs = step(carry, xs)
        print(it, {k: float(v[0, -1]) for k, v in logs.items()})
    _, size, total = jax.tree.map(lambda a: a[0], carry)
    print("codebook", (total / jnp.maximum(size, 1e-3)[:, None]).shape)


if __name__ == "__main__":
    main()
