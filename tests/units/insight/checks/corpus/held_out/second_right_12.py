# RIGHT (near c2): every shard owns a slice of parameters and momentum; the gradient of all_gather
# is a sum-scatter, so the slice's gradient is already summed over the devices and only divided.
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

SPEC = jax.sharding.PartitionSpec
AXIS, SIZE = "fsdp", 8


def assemble(owned):
    return jax.tree_util.tree_map(lambda s: lax.all_gather(s, AXIS, axis=0, tiled=True), owned)


def model(full, x):
    h = jnp.maximum(x @ full["w_in"], 0.0)
    return (h * full["gate"]) @ full["w_out"]


def local_loss(owned, x, y):
    residual = model(assemble(owned), x) - y
    return jnp.mean(jnp.sum(residual**2, axis=-1))


def train_step(owned, momentum, x, y):
    loss, grads = jax.value_and_grad(local_loss)(owned, x, y)
    grads = jax.tree_util.tree_map(lambda g: g / SIZE, grads)
    momentum = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, momentum, grads)
    owned = jax.tree_util.tree_map(lambda p, m: p - 0.01 * m, owned, momentum)
    return owned, momentum, lax.pmean(loss, AXIS)


def build():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:SIZE]), (AXIS,))
    sliced = SPEC(AXIS)
    return jax.jit(
        jax.shard_map(
            train_step,
            mesh=mesh,
            in_specs=(sliced, sliced, sliced, sliced),
            out_specs=(sliced, sliced, SPEC()),
            check_vma=False,
        )
    )


def main():
    k_in, k_out, k_x, k_true = jax.random.split(jax.random.PRNGKey(81), 4)
    owned = {
        "w_in": jax.random.normal(k_in, (8, 24)) / 8**0.5,
        "gate": jnp.ones((24,)),
        "w_out": jax.random.normal(k_out, (24, 2)) / 24**0.5,
    }
    momentum = jax.tree_util.tree_map(jnp.zeros_like, owned)
    x = jax.random.normal(k_x, (48, 8))
    y = jnp.tanh(x @ jax.random.normal(k_true, (8, 2)))
    step = build()
    for _ in range(5):
        owned, momentum, loss = step(owned, momentum, x, y)
        print(float(loss))


if __name__ == "__main__":
    main()
