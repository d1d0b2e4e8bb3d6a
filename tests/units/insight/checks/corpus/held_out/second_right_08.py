# RIGHT (near k): zeroth-order descent; the same key is used again on purpose to draw the very same
# direction anew, and each step has its own key.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


def direction(key, tree):
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    keys = random.split(key, len(leaves))
    noise = [random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves)]
    return jax.tree_util.tree_unflatten(treedef, noise)


def shift(params, key, amount):
    z = direction(key, params)
    return jax.tree_util.tree_map(lambda p, e: p + amount * e, params, z)


def predict(params, x):
    h = nn.swish(x @ params["a"] + params["c"])
    return (h @ params["b"])[:, 0]


def huber(params, x, y):
    r = jnp.abs(predict(params, x) - y)
    return jnp.mean(jnp.where(r < 1.0, 0.5 * r * r, r - 0.5))


def slope_along(params, key, x, y, mu):
    plus = huber(shift(params, key, mu), x, y)
    minus = huber(shift(params, key, -mu), x, y)
    return (plus - minus) / (2.0 * mu)


def run(params, x, y, key, n_steps, lr=0.005, mu=1e-2, n_dirs=4):
    def step(params, k):
        ks = random.split(k, n_dirs)
        slopes = jax.vmap(lambda kk: slope_along(params, kk, x, y, mu))(ks)

        def apply(params, ks_slope):
            kk, s = ks_slope
            return shift(params, kk, -lr * s / n_dirs), None

        params, _ = lax.scan(apply, params, (ks, slopes))
        return params, huber(params, x, y)

    return lax.scan(step, params, random.split(key, n_steps))


def main():
    k_a, k_b, k_x, k_run = random.split(random.PRNGKey(44), 4)
    params = {
        "a": random.normal(k_a, (3, 8)) * 0.5,
        "b": random.normal(k_b, (8, 1)) * 0.3,
        "c": jnp.zeros(8),
    }
    x = random.normal(k_x, (64, 3))
    y = jnp.sin(x[:, 0]) + 0.5 * x[:, 1]
    params, losses = jax.jit(run, static_argnums=4)(params, x, y, k_run, 20)
    print(losses[::5])


if __name__ == "__main__":
    main()
