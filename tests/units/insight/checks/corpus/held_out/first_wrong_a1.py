# FAULTY (a): psum of gradients of a loss that is the mean over the lane's examples, so the step is
# n times too large
import functools

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


def init_mlp(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (i, o)) * jnp.sqrt(2.0 / i), "b": jnp.zeros(o)}
        for k, i, o in zip(keys, sizes[:-1], sizes[1:])
    ]


def apply_mlp(layers, x):
    for layer in layers[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def cross_entropy(layers, images, labels):
    logits = apply_mlp(layers, images)
    one_hot = nn.one_hot(labels, logits.shape[-1])
    loss = -jnp.mean(jnp.sum(one_hot * nn.log_softmax(logits), axis=-1))
    accuracy = jnp.mean(jnp.argmax(logits, -1) == labels)
    return loss, accuracy


@functools.partial(jax.pmap, axis_name="devices")
def step(layers, velocity, images, labels):
    grad_fn = jax.value_and_grad(cross_entropy, has_aux=True)
    (loss, accuracy), grads = grad_fn(layers, images, labels)
    grads = lax.psum(grads, axis_name="devices")
    loss = lax.pmean(loss, axis_name="devices")
    accuracy = lax.pmean(accuracy, axis_name="devices")
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
    layers = jax.tree_util.tree_map(lambda p, v: p - 0.02 * v, layers, velocity)
    return layers, velocity, loss, accuracy


def replicate(tree, n):
    return jax.tree_util.tree_map(lambda a: jnp.stack([a] * n), tree)


def main():
    n = jax.local_device_count()
    layers = replicate(init_mlp(random.PRNGKey(0), [12, 24, 5]), n)
    velocity = jax.tree_util.tree_map(jnp.zeros_like, layers)
    rng = np.random.RandomState(0)
    centers = rng.randn(5, 12)
    for it in range(5):
        labels = rng.randint(0, 5, size=(n, 16)).astype(np.int32)
        images = (centers[labels] + 0.7 * rng.randn(n, 16, 12)).astype(np.float32)
        layers, velocity, loss, accuracy = step(layers, velocity, images, labels)
        print(it, float(loss[0]), float(accuracy[0]))


if __name__ == "__main__":
    main()
