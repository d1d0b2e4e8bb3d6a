# RIGHT: federated averaging, clients train on their own and their deltas are combined by example
# count
from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn


def client_loss(model, x, y, valid):
    z = x @ model["w"] + model["b"]
    per_row = nn.softplus(z) - y * z
    return jnp.sum(per_row * valid) / jnp.maximum(valid.sum(), 1.0)


def local_epochs(model, x, y, valid, epochs, lr):
    def epoch(m, _):
        loss, g = jax.value_and_grad(client_loss)(m, x, y, valid)
        return jax.tree.map(lambda a, d: a - lr * d, m, g), loss

    return lax.scan(epoch, model, None, length=epochs)


@partial(jax.pmap, axis_name="clients")
def communication_round(global_model, x, y, valid):
    local, losses = local_epochs(global_model, x, y, valid, epochs=5, lr=0.3)
    size = valid.sum()
    share = size / lax.psum(size, "clients")
    delta = jax.tree.map(lambda a, b: share * (a - b), local, global_model)
    delta = lax.psum(delta, "clients")
    merged = jax.tree.map(jnp.add, global_model, delta)
    return merged, lax.psum(share * losses[-1], "clients"), losses


def main():
    n = jax.local_device_count()
    rng = np.random.default_rng(17)
    cap, d = 24, 5
    truth = rng.normal(size=d)
    shift = rng.normal(size=(n, 1, d))
    x = (rng.normal(size=(n, cap, d)) + shift).astype(np.float32)
    y = (x @ truth > 0).astype(np.float32)
    sizes = rng.integers(6, cap + 1, size=(n, 1))
    valid = (np.arange(cap)[None] < sizes).astype(np.float32)
    model = {"w": jnp.zeros((n, d)), "b": jnp.zeros((n,))}
    for r in range(4):
        model, loss, trace = communication_round(model, x, y, valid)
        print(
            "round",
            r,
            "weighted",
            float(loss[0]),
            "client first/last",
            np.asarray(trace)[:, [0, -1]].mean(0),
        )


if __name__ == "__main__":
    main()
