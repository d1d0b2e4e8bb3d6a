# FAULTY (k): the scan body closes over one dropout key, so each training step applies the same
# dropout mask; it has to be split or folded per step.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random


def make_params(key, d_in, d_hidden, n_cls):
    ka, kb = random.split(key)
    return dict(
        a=nn.initializers.lecun_normal()(ka, (d_in, d_hidden)),
        b=nn.initializers.lecun_normal()(kb, (d_hidden, n_cls)),
    )


def dropout(key, x, rate):
    keep = random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(keep, x / (1.0 - rate), 0.0)


def forward(params, x, key, rate=0.3):
    h = nn.gelu(x @ params["a"])
    return dropout(key, h, rate) @ params["b"]


def cross_entropy(params, x, y, key):
    logits = forward(params, x, key)
    lp = nn.log_softmax(logits)
    return -jnp.mean(jnp.sum(nn.one_hot(y, lp.shape[-1]) * lp, axis=-1))


def fit(params, xs, ys, rng, n_steps, batch=16, lr=0.1):
    shuffle_rng, mask_rng = random.split(rng)
    order = random.permutation(shuffle_rng, xs.shape[0])
    xs, ys = xs[order], ys[order]
    velocity = jax.tree_util.tree_map(jnp.zeros_like, params)

    def body(carry, i):
        params, velocity = carry
        lo = (i * batch) % xs.shape[0]
        x = lax.dynamic_slice_in_dim(xs, lo, batch)
        y = lax.dynamic_slice_in_dim(ys, lo, batch)
        loss, grads = jax.value_and_grad(cross_entropy)(params, x, y, mask_rng)
        velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
        params = jax.tree_util.tree_map(lambda p, v: p - lr * v, params, velocity)
        return (params, velocity), loss

    (params, _), losses = lax.scan(body, (params, velocity), jnp.arange(n_steps))
    return params, losses


def main():
    k_init, k_x, k_w, k_fit = random.split(random.PRNGKey(42), 4)
    xs = random.normal(k_x, (64, 5))
    ys = jnp.argmax(xs @ random.normal(k_w, (5, 3)), axis=-1)
    params = make_params(k_init, 5, 24, 3)
    params, losses = jax.jit(fit, static_argnums=4)(params, xs, ys, k_fit, 8)
    print("losses", losses)


if __name__ == "__main__":
    main()
