# RIGHT: summed losses and psum-ed gradients are divided by the global token count
from functools import partial

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

VOCAB, DIM, LR = 17, 12, 0.5


def token_nll(params, tokens, mask):
    h = params["emb"][tokens[:, :-1]]
    h = jnp.tanh(h @ params["mix"])
    logp = nn.log_softmax(h @ params["out"])
    picked = jnp.take_along_axis(logp, tokens[:, 1:, None], axis=-1)[..., 0]
    return -jnp.sum(picked * mask[:, 1:])


@partial(jax.pmap, axis_name="lanes")
def step(params, tokens, mask):
    total, grads = jax.value_and_grad(token_nll)(params, tokens, mask)
    count = lax.psum(mask[:, 1:].sum(), "lanes")
    total, grads = lax.psum((total, grads), "lanes")
    params = jax.tree_util.tree_map(lambda p, g: p - LR * g / count, params, grads)
    return params, total / count


def init(key):
    k1, k2, k3 = random.split(key, 3)
    return {
        "emb": 0.1 * random.normal(k1, (VOCAB, DIM)),
        "mix": 0.3 * random.normal(k2, (DIM, DIM)),
        "out": 0.1 * random.normal(k3, (DIM, VOCAB)),
    }


def main():
    n = jax.local_device_count()
    rng = np.random.RandomState(0)
    params = init(random.PRNGKey(0))
    params = jax.tree_util.tree_map(lambda x: jnp.stack([x] * n), params)
    for it in range(4):
        tokens = rng.randint(0, VOCAB, size=(n, 4, 9)).astype(np.int32)
        lengths = rng.randint(3, 10, size=(n, 4, 1))
        mask = (np.arange(9) < lengths).astype(np.float32)
        params, nll = step(params, tokens, mask)
        print("step", it, "nll/token", float(nll[0]))


if __name__ == "__main__":
    main()
