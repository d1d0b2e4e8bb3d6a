# RIGHT: the gradients are summed over the workers, and the learning rate is divided by the number
# of workers
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn


class HeavyBall:
    def __init__(self, rate, beta=0.9):
        self.rate = rate
        self.beta = beta

    def slots(self, weights):
        return [jnp.zeros_like(w) for w in weights]

    def apply(self, weights, slots, pushed):
        slots = [self.beta * s + g for s, g in zip(slots, pushed)]
        weights = [w - self.rate * s for w, s in zip(weights, slots)]
        return weights, slots


def hinge(weights, x, y):
    w, b = weights
    margin = y * (x @ w + b)
    return jnp.mean(nn.relu(1.0 - margin)) + 1e-3 * jnp.sum(w * w)


def make_server_step(opt):
    def server_step(weights, slots, x, y):
        value, push = jax.value_and_grad(hinge)(weights, x, y)
        push = [lax.psum(g, "workers") for g in push]
        weights, slots = opt.apply(weights, slots, push)
        return weights, slots, lax.pmean(value, "workers")

    return jax.pmap(server_step, axis_name="workers")


def main():
    workers = jax.local_device_count()
    opt = HeavyBall(rate=0.08 / workers)
    step = make_server_step(opt)
    rng = np.random.RandomState(5)
    weights = [jnp.zeros((workers, 6)), jnp.zeros((workers,))]
    slots = opt.slots(weights)
    truth = rng.randn(6)
    for it in range(5):
        x = rng.randn(workers, 20, 6).astype(np.float32)
        y = np.sign(x @ truth + 0.3).astype(np.float32)
        weights, slots, value = step(weights, slots, x, y)
        print(it, float(value[0]))


if __name__ == "__main__":
    main()
