# RIGHT: InfoNCE with negatives gathered over all lanes, log_softmax, gradients and metrics
# averaged
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


def encode(tower, x):
    z = nn.relu(x @ tower[0]) @ tower[1]
    return z / (jnp.linalg.norm(z, axis=-1, keepdims=True) + 1e-6)


def info_nce(theta, left, right):
    q = encode(theta["q"], left)
    k = encode(theta["k"], right)
    everyone = lax.all_gather(k, "dev", tiled=True)
    sims = q @ everyone.T * jnp.exp(theta["logit_scale"])
    mine = lax.axis_index("dev") * q.shape[0] + jnp.arange(q.shape[0])
    logp = nn.log_softmax(sims, axis=1)
    loss = -jnp.mean(jnp.take_along_axis(logp, mine[:, None], axis=1))
    hit = jnp.mean((sims.argmax(1) == mine).astype(jnp.float32))
    return loss, hit


def step(theta, ema, left, right):
    (loss, hit), g = jax.value_and_grad(info_nce, has_aux=True)(theta, left, right)
    loss, hit, g = lax.pmean((loss, hit, g), axis_name="dev")
    theta = jax.tree.map(lambda p, d: p - 0.2 * d, theta, g)
    ema = jax.tree.map(lambda e, p: 0.99 * e + 0.01 * p, ema, theta)
    return theta, ema, {"loss": loss, "top1": hit}


def main():
    n = jax.local_device_count()
    keys = random.split(random.PRNGKey(12), 4)
    tower = lambda a, b: (0.3 * random.normal(a, (8, 32)), 0.3 * random.normal(b, (32, 6)))
    theta = {
        "q": tower(keys[0], keys[1]),
        "k": tower(keys[2], keys[3]),
        "logit_scale": jnp.float32(1.5),
    }
    theta = jax.tree.map(lambda a: jnp.stack([a] * n), theta)
    ema = theta
    pstep = jax.pmap(step, axis_name="dev")
    rng = np.random.RandomState(6)
    for it in range(6):
        base = rng.randn(n, 4, 8)
        left = (base + 0.1 * rng.randn(n, 4, 8)).astype(np.float32)
        right = (base + 0.1 * rng.randn(n, 4, 8)).astype(np.float32)
        theta, ema, logs = pstep(theta, ema, left, right)
        print(it, {k: round(float(v[0]), 4) for k, v in logs.items()})


if __name__ == "__main__":
    main()
