# RIGHT (near d1): first and second moments of the lane are pmean-ed before they normalise the
# batch and before they enter the running statistics.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn


class SyncNorm:
    def __init__(self, axis_name, decay=0.9, eps=1e-5):
        self.axis_name, self.decay, self.eps = axis_name, decay, eps

    def init(self, n):
        return {"gain": jnp.ones(n), "bias": jnp.zeros(n)}, (jnp.zeros(n), jnp.ones(n))

    def train(self, p, running, x):
        reduce_axes = tuple(range(x.ndim - 1))
        m1, m2 = x.mean(reduce_axes), jnp.square(x).mean(reduce_axes)
        m1, m2 = lax.pmean((m1, m2), self.axis_name)
        var = jnp.maximum(m2 - m1**2, 0.0)
        fresh = (m1, var)
        running = jax.tree_util.tree_map(
            lambda old, new: self.decay * old + (1 - self.decay) * new, running, fresh
        )
        return self.normalise(p, fresh, x), running

    def normalise(self, p, moments, x):
        mean, var = moments
        return p["gain"] * (x - mean) / jnp.sqrt(var + self.eps) + p["bias"]


norm = SyncNorm("shards")


def conv(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def network(params, running, x):
    h, running = norm.train(params["norm"], running, conv(x, params["conv"]))
    pooled = nn.relu(h).mean(axis=(1, 2))
    return pooled @ params["fc"], running


def objective(params, running, x, y):
    logits, running = network(params, running, x)
    logp = nn.log_softmax(logits)
    return -jnp.mean(jnp.sum(logp * nn.one_hot(y, logits.shape[-1]), -1)), running


def step(params, running, x, y):
    (value, running), grads = jax.value_and_grad(objective, has_aux=True)(params, running, x, y)
    value, grads = lax.pmean((value, grads), "shards")
    params = jax.tree_util.tree_map(lambda p, g: p - 0.2 * g, params, grads)
    return params, running, value


def main():
    kc, kf, kx = jax.random.split(jax.random.PRNGKey(61), 3)
    affine, running = norm.init(6)
    params = {
        "conv": 0.3 * jax.random.normal(kc, (3, 3, 1, 6)),
        "norm": affine,
        "fc": 0.3 * jax.random.normal(kf, (6, 2)),
    }
    params, running = jax.tree_util.tree_map(lambda a: jnp.stack([a] * 8), (params, running))
    x = jax.random.normal(kx, (8, 4, 6, 6, 1))
    y = (x.mean(axis=(2, 3, 4)) > 0).astype(jnp.int32)
    pstep = jax.pmap(step, axis_name="shards")
    for _ in range(4):
        params, running, value = pstep(params, running, x, y)
        print(float(value[0]))
    print("running mean", running[0][0])


if __name__ == "__main__":
    main()
