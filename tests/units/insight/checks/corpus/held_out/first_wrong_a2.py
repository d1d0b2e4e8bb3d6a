# FAULTY (a): the accumulated gradients are a mean over the lane's microbatches, yet they are
# summed over 'dp' and applied undivided
from typing import NamedTuple

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

P = jax.sharding.PartitionSpec


class Regressor(NamedTuple):
    phase: object
    freq: object
    amp: object

    def __call__(self, x):
        return jnp.cos(x[:, None] * self.freq + self.phase) @ self.amp


class Trainer:
    def __init__(self, mesh, rate, pieces):
        self.mesh, self.rate, self.pieces = mesh, rate, pieces
        self.n = mesh.shape["dp"]
        self._step = jax.jit(
            jax.shard_map(
                self.on_device,
                mesh=mesh,
                in_specs=(P(), P("dp"), P("dp")),
                out_specs=(P(), P()),
                check_vma=False,
            )
        )

    @staticmethod
    def cost(net, x, y):
        return jnp.mean(jnp.square(net(x) - y))

    def accumulate(self, net, x, y):
        def piece(carry, xy):
            c, g = jax.value_and_grad(self.cost)(net, *xy)
            return jax.tree.map(lambda a, b: a + b / self.pieces, carry, (c, g)), ()

        empty = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, net))
        xy = (x.reshape(self.pieces, -1), y.reshape(self.pieces, -1))
        return lax.scan(piece, empty, xy)[0]

    def on_device(self, net, x, y):
        cost, grads = self.accumulate(net, x, y)
        cost = lax.psum(cost, "dp") / self.n
        grads = jax.tree.map(lambda g: lax.psum(g, "dp"), grads)
        net = jax.tree.map(lambda p, g: p - self.rate * g, net, grads)
        return net, cost

    def step(self, net, x, y):
        return self._step(net, x, y)


def main():
    n = jax.local_device_count()
    trainer = Trainer(jax.sharding.Mesh(np.array(jax.devices()), ("dp",)), rate=0.01, pieces=4)
    rng = np.random.default_rng(2)
    f32 = lambda a: jnp.asarray(a, jnp.float32)
    net = Regressor(f32(rng.uniform(0, 6.28, 24)), f32(rng.normal(size=24)), f32(np.zeros(24)))
    for it in range(6):
        x = rng.uniform(-3, 3, size=(n * 16,)).astype(np.float32)
        y = np.sin(2 * x).astype(np.float32)
        net, cost = trainer.step(net, x, y)
        print(f"{it}: {float(cost):.4f}")


if __name__ == "__main__":
    main()
