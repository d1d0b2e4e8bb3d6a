# RIGHT (near e3): log(sum(exp(.))) by hand, but with the maximum subtracted first (behind
# stop_gradient) in each step of the recursion.
import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

BLANK = 0


def stable_sum(a, axis):
    top = lax.stop_gradient(jnp.max(a, axis=axis, keepdims=True))
    total = jnp.sum(jnp.exp(a - top), axis=axis)
    return jnp.log(total) + jnp.squeeze(top, axis=axis)


def segment_scores(w, signal):
    h = jnp.tanh(signal @ w["in"])
    return h @ w["emit"]


def log_partition(w, scores):
    def body(alpha, s):
        alpha = stable_sum(alpha[:, None] + w["move"], axis=0) + s
        return alpha, alpha

    last, _ = lax.scan(body, scores[0], scores[1:])
    return stable_sum(last, axis=0)


def gold(w, scores, labels):
    hot = jnp.eye(scores.shape[-1])[labels]
    unary = jnp.einsum("tk,tk->", hot, scores)
    pairs = jnp.einsum("ti,ij,tj->", hot[:-1], w["move"], hot[1:])
    return unary + pairs


def loss(w, signals, labels):
    def one(s, l):
        sc = segment_scores(w, s)
        return log_partition(w, sc) - gold(w, sc, l)

    fit = jnp.mean(jax.vmap(one)(signals, labels)) / signals.shape[1]
    return fit + 1e-4 * sum(jnp.sum(p**2) for p in jax.tree_util.tree_leaves(w))


def train(w, signals, labels, steps):
    def body(w, _):
        value, g = jax.value_and_grad(loss)(w, signals, labels)
        return jax.tree_util.tree_map(lambda p, d: p - 0.2 * d, w, g), value

    return lax.scan(body, w, None, length=steps)


def main():
    ka, kb, kc, kd = jax.random.split(jax.random.PRNGKey(29), 4)
    w = {
        "in": jax.random.normal(ka, (3, 8)),
        "emit": jax.random.normal(kb, (8, 4)) * 0.4,
        "move": jnp.zeros((4, 4)),
    }
    labels = jnp.repeat(jax.random.randint(kc, (6, 5), BLANK, 4), 4, axis=1)
    signals = labels[..., None] * jnp.array([1.0, -0.5, 0.2])
    signals = signals + 0.3 * jax.random.normal(kd, signals.shape)
    w, values = jax.jit(train, static_argnums=3)(w, signals, labels, 5)
    print(values)


if __name__ == "__main__":
    main()
