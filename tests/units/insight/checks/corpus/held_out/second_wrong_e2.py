# FAULTY (e): log of a sigmoid and log of one minus a sigmoid; both saturate to log(0) for scores
# beyond about 17 (or 90), log_sigmoid/softplus of the score is needed.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import random


class Net:
    def __init__(self, sizes):
        self.sizes = sizes

    def init(self, key):
        keys = random.split(key, len(self.sizes) - 1)
        return [
            (random.normal(k, (a, b)) / jnp.sqrt(a), jnp.zeros(b))
            for k, a, b in zip(keys, self.sizes[:-1], self.sizes[1:])
        ]

    def __call__(self, layers, x):
        for w, b in layers[:-1]:
            x = jnp.maximum(x @ w + b, 0.1 * (x @ w + b))
        w, b = layers[-1]
        return x @ w + b


gen, critic = Net((3, 16, 2)), Net((2, 16, 1))


def belief(layers, x):
    return 1.0 / (1.0 + jnp.exp(-critic(layers, x)[:, 0]))


def critic_loss(c, g, real, z):
    fake = gen(g, z)
    on_real = jnp.log(belief(c, real))
    on_fake = jnp.log(1.0 - belief(c, fake))
    return -(on_real + on_fake).mean()


def gen_loss(g, c, z):
    return -jnp.mean(jnp.log(belief(c, gen(g, z))))


def descend(layers, grads, lr):
    return jax.tree_util.tree_map(lambda p, d: p - lr * d, layers, grads)


@jax.jit
def round_(c, g, real, key):
    k_c, k_g = random.split(key)
    z = random.normal(k_c, (real.shape[0], 3))
    c_val, c_grad = jax.value_and_grad(critic_loss)(c, g, real, z)
    c = descend(c, c_grad, 0.05)
    z = random.normal(k_g, (real.shape[0], 3))
    g_val, g_grad = jax.value_and_grad(gen_loss)(g, c, z)
    return c, descend(g, g_grad, 0.05), (c_val, g_val)


def main():
    k_gen, k_critic, k_data, k_train = random.split(random.PRNGKey(3), 4)
    g, c = gen.init(k_gen), critic.init(k_critic)
    angle = random.uniform(k_data, (64,), maxval=6.28)
    real = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    for i, k in enumerate(random.split(k_train, 5)):
        c, g, (cv, gv) = round_(c, g, real, k)
        print(i, float(cv), float(gv))


if __name__ == "__main__":
    main()
