# FAULTY (c): the accumulated gradients are used shard by shard, only the loss is averaged over
# 'data'; with check_vma=False the parameters returned under P() differ per device.
import math
from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn

VOCAB, WIDTH, CONTEXT = 17, 16, 8
Spec = jax.sharding.PartitionSpec


def init_lm(key):
    keys = iter(jax.random.split(key, 6))
    mat = lambda a, b: jax.random.normal(next(keys), (a, b)) / math.sqrt(a)
    return {
        "tok": 0.1 * mat(VOCAB, WIDTH),
        "qkv": mat(WIDTH, 3 * WIDTH),
        "out": mat(WIDTH, WIDTH),
        "up": mat(WIDTH, 2 * WIDTH),
        "down": mat(2 * WIDTH, WIDTH),
        "head": mat(WIDTH, VOCAB),
    }


def rms(x):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def lm(p, ids):
    x = p["tok"][ids]
    q, k, v = jnp.split(rms(x) @ p["qkv"], 3, axis=-1)
    att = jnp.einsum("btd,bsd->bts", q, k) / math.sqrt(WIDTH)
    causal = jnp.tril(jnp.ones((ids.shape[1], ids.shape[1]), bool))
    att = nn.softmax(jnp.where(causal, att, -1e9), axis=-1)
    x = x + jnp.einsum("bts,bsd->btd", att, v) @ p["out"]
    x = x + nn.gelu(rms(x) @ p["up"]) @ p["down"]
    return rms(x) @ p["head"]


def token_loss(p, ids):
    logp = nn.log_softmax(lm(p, ids[:, :-1]))
    return -jnp.take_along_axis(logp, ids[:, 1:, None], axis=-1).mean()


def update(p, ids, micro=2, lr=0.1):
    chunks = ids.reshape(micro, -1, ids.shape[-1])

    def accumulate(carry, chunk):
        total, acc = carry
        loss, g = jax.value_and_grad(token_loss)(p, chunk)
        return (total + loss, jax.tree_util.tree_map(jnp.add, acc, g)), None

    zero = (jnp.float32(0), jax.tree_util.tree_map(jnp.zeros_like, p))
    (loss, grads), _ = lax.scan(accumulate, zero, chunks)
    loss = lax.pmean(loss / micro, "data")
    p = jax.tree_util.tree_map(lambda w, g: w - lr * g / micro, p, grads)
    return p, loss


def main():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("data",))
    sharded = partial(jax.shard_map, mesh=mesh, check_vma=False)
    step = jax.jit(sharded(update, in_specs=(Spec(), Spec("data")), out_specs=(Spec(), Spec())))
    k_init, k_ids = jax.random.split(jax.random.PRNGKey(6))
    params = init_lm(k_init)
    starts = jax.random.randint(k_ids, (32, 1), 0, VOCAB)
    ids = (starts + 3 * jnp.arange(CONTEXT + 1)) % VOCAB
    for _ in range(4):
        params, loss = step(params, ids)
        print(float(loss))


if __name__ == "__main__":
    main()
