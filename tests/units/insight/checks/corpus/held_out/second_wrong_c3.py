# FAULTY (c): the encoder's gradient is psum-ed and divided, but the head's leaves are put into the
# dict as they are, so the head is trained on the device's own batch only.
import dataclasses
from typing import Any

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax, nn


@dataclasses.dataclass
class Trainer:
    encoder_lr: float
    head_lr: float
    axis: str = "replica"
    opt: Any = None

    def init(self, key):
        e1, e2, h = jax.random.split(key, 3)
        glorot = nn.initializers.glorot_normal()
        encoder = [glorot(e1, (10, 32)), glorot(e2, (32, 8))]
        head = {"w": glorot(h, (8, 4)), "b": jnp.zeros(4)}
        return {"encoder": encoder, "head": head}

    def embed(self, encoder, x):
        for w in encoder:
            x = jnp.tanh(x @ w)
        return x

    def loss(self, params, x, y):
        z = self.embed(params["encoder"], x)
        logits = z @ params["head"]["w"] + params["head"]["b"]
        picked = jnp.sum(logits * nn.one_hot(y, 4), axis=-1)
        hits = jnp.mean(jnp.argmax(logits, axis=-1) == y)
        return jnp.mean(nn.logsumexp(logits, axis=-1) - picked), hits

    def average(self, tree):
        size = lax.psum(1, self.axis)
        return jax.tree_util.tree_map(lambda g: lax.psum(g, self.axis) / size, tree)

    def step(self, params, x, y):
        (loss, hits), grads = jax.value_and_grad(self.loss, has_aux=True)(params, x, y)
        grads = {"encoder": self.average(grads["encoder"]), "head": grads["head"]}
        encoder = jax.tree_util.tree_map(
            lambda p, g: p - self.encoder_lr * g, params["encoder"], grads["encoder"]
        )
        head = jax.tree_util.tree_map(
            lambda p, g: p - self.head_lr * g, params["head"], grads["head"]
        )
        loss, hits = self.average((loss, hits))
        return {"encoder": encoder, "head": head}, {"loss": loss, "hits": hits}

    def compiled(self):
        return jax.pmap(self.step, axis_name=self.axis)


def replicate(tree, n):
    return jax.tree_util.tree_map(lambda a: jnp.stack([a] * n), tree)


def main():
    trainer = Trainer(encoder_lr=0.05, head_lr=0.2)
    k_init, k_x, k_c = jax.random.split(jax.random.PRNGKey(31), 3)
    params = replicate(trainer.init(k_init), 8)
    x = jax.random.normal(k_x, (8, 12, 10))
    y = jnp.argmax(x @ jax.random.normal(k_c, (10, 4)), axis=-1)
    step = trainer.compiled()
    for _ in range(4):
        params, metrics = step(params, x, y)
        print({k: float(v[0]) for k, v in metrics.items()})


if __name__ == "__main__":
    main()
