# FAULTY (c): only the generator's gradient is averaged over the devices; each device updates its
# discriminator with its own gradient and the copies drift apart.
from functools import partial

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

tmap = jax.tree_util.tree_map


def linear(key, n_in, n_out):
    return {"kernel": random.normal(key, (n_in, n_out)) / n_in**0.5, "bias": jnp.zeros(n_out)}


def mlp_init(key, *dims):
    return [linear(k, a, b) for k, a, b in zip(random.split(key, len(dims) - 1), dims, dims[1:])]


def mlp(layers, x):
    for layer in layers[:-1]:
        x = nn.leaky_relu(x @ layer["kernel"] + layer["bias"])
    return x @ layers[-1]["kernel"] + layers[-1]["bias"]


def d_objective(d_params, g_params, real, noise):
    fake = lax.stop_gradient(mlp(g_params, noise))
    return jnp.mean(nn.softplus(-mlp(d_params, real))) + jnp.mean(nn.softplus(mlp(d_params, fake)))


def g_objective(g_params, d_params, noise):
    return jnp.mean(nn.softplus(-mlp(d_params, mlp(g_params, noise))))


def rmsprop(params, grads, nu, lr=5e-3):
    nu = tmap(lambda n, g: 0.95 * n + 0.05 * g * g, nu, grads)
    return tmap(lambda p, g, n: p - lr * g / (jnp.sqrt(n) + 1e-6), params, grads, nu), nu


@partial(jax.pmap, axis_name="dev", donate_argnums=(0,))
def train_step(state, real, key):
    kd, kg = random.split(key)
    n = real.shape[0]
    d_loss, d_grads = jax.value_and_grad(d_objective)(
        state["d"], state["g"], real, random.normal(kd, (n, 4))
    )
    d, d_nu = rmsprop(state["d"], d_grads, state["d_nu"])

    g_loss, g_grads = jax.value_and_grad(g_objective)(state["g"], d, random.normal(kg, (n, 4)))
    g_grads = lax.pmean(g_grads, axis_name="dev")
    g, g_nu = rmsprop(state["g"], g_grads, state["g_nu"])

    metrics = lax.pmean({"d": d_loss, "g": g_loss}, axis_name="dev")
    return {"d": d, "g": g, "d_nu": d_nu, "g_nu": g_nu}, metrics


def main():
    kd, kg, kx, loop = random.split(random.PRNGKey(99), 4)
    d, g = mlp_init(kd, 2, 16, 1), mlp_init(kg, 4, 16, 2)
    state = {"d": d, "g": g, "d_nu": tmap(jnp.zeros_like, d), "g_nu": tmap(jnp.zeros_like, g)}
    state = tmap(lambda a: jnp.tile(a[None], (8,) + (1,) * a.ndim), state)
    real = random.normal(kx, (8, 16, 2)) * 0.3 + jnp.array([1.0, -1.0])
    for i in range(4):
        keys = random.split(random.fold_in(loop, i), 8)
        state, metrics = train_step(state, real, keys)
        print(i, float(metrics["d"][0]), float(metrics["g"][0]))


if __name__ == "__main__":
    main()
