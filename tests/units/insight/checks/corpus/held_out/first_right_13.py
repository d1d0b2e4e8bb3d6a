# RIGHT: per-lane losses are returned and the host averages all of them; gradients are averaged by
# the wrapper
import functools

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

LATENT, DATA = 2, 10


def averaged_grad(fn, axis):
    inner = jax.value_and_grad(fn)

    @functools.wraps(fn)
    def wrapped(*args):
        value, g = inner(*args)
        return value, jax.tree_util.tree_map(lambda t: lax.pmean(t, axis), g)

    return wrapped


def elbo(params, key, x):
    stats = jnp.tanh(x @ params["enc0"]) @ params["enc1"]
    mu, logvar = jnp.split(stats, 2, axis=-1)
    z = mu + jnp.exp(0.5 * logvar) * random.normal(key, mu.shape)
    logits = jnp.tanh(z @ params["dec0"]) @ params["dec1"]
    rec = jnp.sum(x * nn.log_sigmoid(logits) + (1 - x) * nn.log_sigmoid(-logits), -1)
    kl = 0.5 * jnp.sum(jnp.exp(logvar) + mu**2 - 1.0 - logvar, -1)
    return jnp.mean(kl - rec)


def step(params, m, v, t, key, x):
    lane_key = random.fold_in(key, lax.axis_index("i"))
    loss, g = averaged_grad(elbo, "i")(params, lane_key, x)
    tm = jax.tree_util.tree_map
    m = tm(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = tm(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
    c1, c2 = 1 - 0.9**t, 1 - 0.999**t
    params = tm(lambda p, a, b: p - 0.01 * (a / c1) / (jnp.sqrt(b / c2) + 1e-8), params, m, v)
    return params, m, v, loss


def main():
    n = jax.local_device_count()
    ks = random.split(random.PRNGKey(3), 4)
    shapes = {
        "enc0": (DATA, 16),
        "enc1": (16, 2 * LATENT),
        "dec0": (LATENT, 16),
        "dec1": (16, DATA),
    }
    params = {name: 0.2 * random.normal(k, s) for k, (name, s) in zip(ks, shapes.items())}
    params = jax.tree_util.tree_map(lambda a: jnp.repeat(a[None], n, axis=0), params)
    m = jax.tree_util.tree_map(jnp.zeros_like, params)
    v = jax.tree_util.tree_map(jnp.zeros_like, params)
    pstep = jax.pmap(step, axis_name="i", in_axes=(0, 0, 0, None, None, 0))
    rng = np.random.RandomState(0)
    for t in range(1, 6):
        x = (rng.rand(n, 8, DATA) < np.linspace(0.1, 0.9, DATA)).astype(np.float32)
        params, m, v, losses = pstep(params, m, v, jnp.float32(t), random.PRNGKey(t), x)
        print(t, "-elbo", float(np.mean(np.asarray(losses))))


if __name__ == "__main__":
    main()
