# FAULTY (d): codebook usage and sums come from the shard's own rows, yet are stored as moving
# averages declared replicated (out spec P()); a psum over 'rows' is missing.
import functools
from typing import NamedTuple

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, shard_map

P = jax.sharding.PartitionSpec
CODES, DIM = 6, 4


class Codebook(NamedTuple):
    usage: jax.Array
    total: jax.Array

    @property
    def vectors(self):
        return self.total / jnp.maximum(self.usage, 1e-3)[:, None]


def nearest(book, z):
    dist = jnp.sum((z[:, None, :] - book.vectors[None]) ** 2, axis=-1)
    return nn.one_hot(jnp.argmin(dist, axis=-1), CODES)


def reconstruct(net, book, x):
    z = jnp.tanh(x @ net["enc"])
    hot = lax.stop_gradient(nearest(book, z))
    quant = hot @ book.vectors
    passed = z + lax.stop_gradient(quant - z)
    out = passed @ net["dec"]
    loss = jnp.mean((out - x) ** 2) + 0.25 * jnp.mean((z - lax.stop_gradient(quant)) ** 2)
    return loss, (z, hot)


def local_step(net, book, x, gamma):
    (loss, (z, hot)), grads = jax.value_and_grad(reconstruct, has_aux=True)(net, book, x)
    loss, grads = lax.pmean((loss, grads), "rows")
    net = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, net, grads)
    book = Codebook(
        usage=gamma * book.usage + (1 - gamma) * hot.sum(axis=0),
        total=gamma * book.total + (1 - gamma) * jnp.einsum("nc,nd->cd", hot, z),
    )
    return net, book, loss


def main():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("rows",))
    step = jax.jit(
        shard_map(
            functools.partial(local_step, gamma=0.9),
            mesh=mesh,
            in_specs=(P(), P(), P("rows")),
            out_specs=(P(), P(), P()),
            check_vma=False,
        )
    )
    ke, kd, kb, kx = jax.random.split(jax.random.PRNGKey(13), 4)
    net = {
        "enc": 0.5 * jax.random.normal(ke, (5, DIM)),
        "dec": 0.5 * jax.random.normal(kd, (DIM, 5)),
    }
    book = Codebook(jnp.ones(CODES), 0.5 * jax.random.normal(kb, (CODES, DIM)))
    x = jax.random.normal(kx, (64, 5))
    for _ in range(4):
        net, book, loss = step(net, book, x)
        print(float(loss), np.asarray(book.usage).round(2))


if __name__ == "__main__":
    main()
