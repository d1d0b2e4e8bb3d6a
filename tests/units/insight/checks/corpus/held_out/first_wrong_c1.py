# FAULTY (c): the lane's own gradients update the lane's copy of the weights with no reduction,
# only the loss is averaged
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

P = jax.sharding.PartitionSpec


def adam_init(params):
    zeros = lambda: jax.tree.map(jnp.zeros_like, params)
    return {"mu": zeros(), "nu": zeros(), "t": jnp.zeros(params["w1"].shape[:1])}


def adam_update(grads, opt, params, lr=3e-3, b1=0.9, b2=0.99):
    t = opt["t"] + 1
    mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, opt["mu"], grads)
    nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, opt["nu"], grads)

    def move(p, m, v):
        return p - lr * (m / (1 - b1**t)) / (jnp.sqrt(v / (1 - b2**t)) + 1e-8)

    return jax.tree.map(move, params, mu, nu), {"mu": mu, "nu": nu, "t": t}


def loss_fn(params, x, y):
    h = nn.silu(x @ params["w1"] + params["b1"])
    return jnp.mean((h @ params["w2"] - y) ** 2)


def body(params, opt, x, y):
    params, opt = jax.tree.map(lambda a: a[0], (params, opt))
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    params, opt = adam_update(grads, opt, params)
    loss = lax.pmean(loss, "batch")
    params, opt = jax.tree.map(lambda a: a[None], (params, opt))
    return params, opt, loss


def make_step():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("batch",))
    lane = P("batch")
    return jax.jit(
        jax.shard_map(body, mesh=mesh, in_specs=(lane,) * 4, out_specs=(lane, lane, P()))
    )


def main():
    n = jax.local_device_count()
    k1, k2 = random.split(random.PRNGKey(10))
    params = {
        "w1": random.normal(k1, (4, 32)) / 2,
        "b1": jnp.zeros(32),
        "w2": random.normal(k2, (32,)) / 6,
    }
    params = jax.tree.map(lambda a: jnp.tile(a[None], (n,) + (1,) * a.ndim), params)
    opt = adam_init(params)
    step = make_step()
    rng = np.random.RandomState(9)
    for it in range(6):
        x = rng.randn(n * 16, 4).astype(np.float32)
        y = (x[:, 0] * x[:, 1] - x[:, 2]).astype(np.float32)
        params, opt, loss = step(params, opt, x, y)
        print(it, float(loss))
    final = jax.tree.map(lambda a: a[0], params)
    x = rng.randn(64, 4).astype(np.float32)
    print("test", float(loss_fn(final, x, x[:, 0] * x[:, 1] - x[:, 2])))


if __name__ == "__main__":
    main()
