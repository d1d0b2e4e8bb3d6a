# FAULTY (e): the forward recursion takes log(sum(exp(.))) without subtracting the maximum, the
# scores grow with the length of the sentence and exp overflows.
import functools

import phalanx as jax
from phalanx import lax
from phalanx import numpy as jnp

TAGS = 4


def emissions(theta, words):
    return jnp.einsum("td,dk->tk", theta["embed"][words], theta["proj"])


def partition(theta, em):
    def advance(alpha, e_t):
        scores = alpha[:, None] + theta["trans"] + e_t[None, :]
        return jnp.log(jnp.exp(scores).sum(axis=0)), None

    first = theta["start"] + em[0]
    alpha, _ = lax.scan(advance, first, em[1:])
    return jnp.log(jnp.sum(jnp.exp(alpha)))


def path_score(theta, em, tags):
    unary = jnp.take_along_axis(em, tags[:, None], axis=1).sum()
    pair = theta["trans"][tags[:-1], tags[1:]].sum()
    return theta["start"][tags[0]] + unary + pair


def sentence_nll(theta, words, tags):
    em = emissions(theta, words)
    return partition(theta, em) - path_score(theta, em, tags)


def objective(theta, batch):
    words, tags = batch
    losses = jax.vmap(functools.partial(sentence_nll, theta))(words, tags)
    return losses.mean() / words.shape[1]


@functools.partial(jax.jit, static_argnames="lr")
def fit_step(theta, batch, lr=0.3):
    value, d = jax.value_and_grad(objective)(theta, batch)
    return jax.tree_util.tree_map(lambda a, b: a - lr * b, theta, d), value


def main():
    ks = jax.random.split(jax.random.PRNGKey(11), 4)
    theta = {
        "embed": 0.3 * jax.random.normal(ks[0], (20, 6)),
        "proj": 0.3 * jax.random.normal(ks[1], (6, TAGS)),
        "trans": jnp.zeros((TAGS, TAGS)),
        "start": jnp.zeros((TAGS,)),
    }
    words = jax.random.randint(ks[2], (12, 10), 0, 20)
    tags = (words + jax.random.randint(ks[3], (12, 10), 0, 2)) % TAGS
    for _ in range(4):
        theta, value = fit_step(theta, (words, tags))
        print(float(value))


if __name__ == "__main__":
    main()
