# FAULTY (e): hand written log(sum(exp)) without subtracting the maximum, which overflows at this
# low temperature
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, random

P = jax.sharding.PartitionSpec


def embed(w, x):
    e = jnp.tanh(x @ w["proj"]) @ w["out"]
    return e * lax.rsqrt(jnp.sum(e * e, axis=-1, keepdims=True) + 1e-8)


def nt_xent(w, a, b, tau):
    za, zb = embed(w, a), embed(w, b)
    bank = lax.all_gather(zb, "shard", axis=0, tiled=True)
    logits = (za @ bank.T) / tau
    positive = jnp.sum(za * zb, axis=-1) / tau
    normalizer = jnp.log(jnp.sum(jnp.exp(logits), axis=-1))
    return jnp.mean(normalizer - positive)


def make_objective(mesh, tau):
    def on_shard(w, a, b):
        return lax.pmean(nt_xent(w, a, b, tau), "shard")

    return jax.shard_map(on_shard, mesh=mesh, in_specs=(P(), P("shard"), P("shard")), out_specs=P())


def make_step(mesh, lr, tau=0.01):
    objective = make_objective(mesh, tau)

    @jax.jit
    def step(w, slow, a, b):
        loss, g = jax.value_and_grad(objective)(w, a, b)
        w = {k: w[k] - lr * g[k] for k in w}
        slow = {k: 0.95 * slow[k] + 0.05 * w[k] for k in w}
        return w, slow, loss

    return step


def main():
    n = jax.local_device_count()
    mesh = jax.make_mesh((n,), ("shard",))
    k1, k2 = random.split(random.PRNGKey(3))
    w = {"proj": random.normal(k1, (10, 24)) / 3, "out": random.normal(k2, (24, 8)) / 5}
    slow = dict(w)
    step = make_step(mesh, lr=0.01)
    rng = np.random.RandomState(12)
    for it in range(5):
        item = rng.randn(4 * n, 10)
        a = (item + 0.1 * rng.randn(*item.shape)).astype(np.float32)
        b = (item + 0.1 * rng.randn(*item.shape)).astype(np.float32)
        a, b = jax.device_put((a, b), jax.sharding.NamedSharding(mesh, P("shard")))
        w, slow, loss = step(w, slow, a, b)
        print(it, float(loss))


if __name__ == "__main__":
    main()
