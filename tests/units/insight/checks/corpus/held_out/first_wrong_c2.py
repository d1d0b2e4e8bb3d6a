# FAULTY (c): the generator's gradients are averaged but the critic's are not, so every lane ends
# up with a critic of its own
from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

Z = 3


def linear(key, i, o):
    return {"w": random.normal(key, (i, o)) / np.sqrt(i), "b": jnp.zeros((o,))}


def dense(layer, x):
    return x @ layer["w"] + layer["b"]


def generate(g, z):
    return dense(g["two"], nn.leaky_relu(dense(g["one"], z)))


def critic(d, x):
    return dense(d["two"], nn.leaky_relu(dense(d["one"], x)))[:, 0]


def sgd(tree, grads, lr):
    return jax.tree_util.tree_map(lambda p, q: p - lr * q, tree, grads)


def critic_loss(d, g, z, real):
    fake = lax.stop_gradient(generate(g, z))
    return nn.softplus(-critic(d, real)).mean() + nn.softplus(critic(d, fake)).mean()


def generator_loss(g, d, z):
    return nn.softplus(-critic(d, generate(g, z))).mean()


@partial(jax.pmap, axis_name="gpu")
def step(nets, key, real):
    g, d = nets
    kd, kg, key = random.split(key, 3)
    z = random.normal(kd, (real.shape[0], Z))
    d_loss, d_grad = jax.value_and_grad(critic_loss)(d, g, z, real)
    d = sgd(d, d_grad, 0.1)
    z = random.normal(kg, (real.shape[0], Z))
    g_loss, g_grad = jax.value_and_grad(generator_loss)(g, d, z)
    g = sgd(g, lax.pmean(g_grad, "gpu"), 0.05)
    logs = lax.pmean({"d": d_loss, "g": g_loss}, "gpu")
    return (g, d), key, logs


def main():
    n = jax.local_device_count()
    ks = random.split(random.PRNGKey(20), 4)
    g = {"one": linear(ks[0], Z, 16), "two": linear(ks[1], 16, 2)}
    d = {"one": linear(ks[2], 2, 16), "two": linear(ks[3], 16, 1)}
    nets = jax.tree_util.tree_map(lambda a: jnp.stack([a for _ in range(n)]), (g, d))
    keys = random.split(random.PRNGKey(21), n)
    rng = np.random.RandomState(2)
    for it in range(6):
        angle = rng.uniform(0, 2 * np.pi, size=(n, 16))
        real = np.stack([np.cos(angle), np.sin(angle)], -1).astype(np.float32)
        nets, keys, logs = step(nets, keys, real)
        print(it, float(logs["d"][0]), float(logs["g"][0]))


if __name__ == "__main__":
    main()
