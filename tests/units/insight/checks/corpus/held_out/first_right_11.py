# RIGHT: the gradient is taken outside shard_map of a loss averaged over 'data', with partial
# products summed over 'model'
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn

P = jax.sharding.PartitionSpec


def block(w_in, w_out, x, y):
    hidden = nn.gelu(x @ w_in)
    partial_out = hidden @ w_out
    pred = lax.psum(partial_out, "model")
    return lax.pmean(jnp.mean((pred - y) ** 2), "data")


def build(mesh, lr=0.05):
    sharded_loss = jax.shard_map(
        block,
        mesh=mesh,
        in_specs=(P(None, "model"), P("model", None), P("data", None), P("data", None)),
        out_specs=P(),
    )

    @jax.jit
    def step(weights, x, y):
        loss, grads = jax.value_and_grad(lambda ws: sharded_loss(*ws, x, y))(weights)
        weights = tuple(w - lr * g for w, g in zip(weights, grads))
        return weights, loss

    return step


def main():
    n = jax.local_device_count()
    model = 2 if n % 2 == 0 else 1
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(n // model, model), ("data", "model"))
    rng = np.random.RandomState(4)
    weights = (
        jnp.asarray(rng.randn(6, 16) / 3, jnp.float32),
        jnp.asarray(rng.randn(16, 2) / 4, jnp.float32),
    )
    step = build(mesh)
    for it in range(5):
        x = rng.randn(8 * n, 6).astype(np.float32)
        y = np.stack([x[:, 0] * x[:, 1], x.sum(1)], axis=1).astype(np.float32)
        weights, loss = step(weights, x, y)
        print(it, float(loss))


if __name__ == "__main__":
    main()
