# RIGHT: a deep ensemble, members are meant to differ; the log is of a mixture of probabilities
# plus epsilon
import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn, random

CLASSES = 3


def init_member(key):
    a, b = random.split(key)
    return {
        "w1": random.normal(a, (2, 16)),
        "b1": jnp.zeros(16),
        "w2": 0.2 * random.normal(b, (16, CLASSES)),
    }


def logits_of(member, x):
    return nn.relu(x @ member["w1"] + member["b1"]) @ member["w2"]


def member_loss(member, x, y):
    logp = nn.log_softmax(logits_of(member, x))
    return -jnp.mean(jnp.sum(logp * nn.one_hot(y, CLASSES), axis=-1))


def train_member(member, key, x, y):
    def body(m, k):
        rows = random.randint(k, (16,), 0, x.shape[0])
        loss, g = jax.value_and_grad(member_loss)(m, x[rows], y[rows])
        m = jax.tree.map(lambda p, d: p - 0.1 * d, m, g)
        return m, loss

    return lax.scan(body, member, random.split(key, 10))


def ensemble_nll(member, x, y):
    probs = lax.pmean(nn.softmax(logits_of(member, x)), "member")
    picked = jnp.take_along_axis(probs, y[:, None], axis=1)[:, 0]
    return -jnp.mean(jnp.log(picked + 1e-8))


p_train = jax.pmap(train_member, axis_name="member", in_axes=(0, 0, None, None))
p_score = jax.pmap(ensemble_nll, axis_name="member", in_axes=(0, None, None))


def main():
    n = jax.local_device_count()
    rng = np.random.default_rng(1)
    y = rng.integers(0, CLASSES, size=64).astype(np.int32)
    x = (rng.normal(size=(64, 2)) + 2.0 * np.stack([np.cos(2.1 * y), np.sin(2.1 * y)], 1)).astype(
        np.float32
    )
    members = jax.vmap(init_member)(random.split(random.PRNGKey(7), n))
    for epoch in range(3):
        keys = random.split(random.PRNGKey(100 + epoch), n)
        members, losses = p_train(members, keys, x, y)
        nll = p_score(members, x, y)[0]
        print(epoch, "per member", np.asarray(losses[:, -1]).round(3), "ensemble nll", float(nll))


if __name__ == "__main__":
    main()
