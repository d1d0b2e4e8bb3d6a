"""Lanes that exchange: statistics over all of them, a ring, and two axes by name."""

import numpy as np

import phalanx as jax
import phalanx.numpy as jnp
from phalanx import lax

n = 8
scores = np.random.default_rng(3).normal(size=(n, 5)).astype(np.float32)


def standardized(x):
    center = lax.pmean(x.mean(), "students")
    spread = jnp.sqrt(lax.pmean(((x - center) ** 2).mean(), "students"))
    return (x - center) / spread


found = jax.pmap(standardized, axis_name="students")(scores)
np.testing.assert_allclose(found, (scores - scores.mean()) / scores.std(), rtol=1e-4, atol=1e-5)


def ranked(x):
    everybody = lax.all_gather(x.sum(), "students")
    return (everybody > x.sum()).sum(), lax.axis_index("students")


ranks, seats = jax.pmap(ranked, axis_name="students")(scores)
order = np.argsort(-scores.sum(1))
assert ranks[order].tolist() == seats.tolist() == [*range(n)]

ring = [(i, (i + 1) % n) for i in range(n)]
passed = jax.pmap(lambda x: lax.ppermute(x, "ring", ring), axis_name="ring")(jnp.arange(n))
assert passed.tolist() == [n - 1, *range(n - 1)]

board = jnp.arange(12.0).reshape(3, 4)
both = jax.pmap(
    jax.vmap(lambda x: (lax.psum(x, "column"), lax.psum(x, ("row", "column"))), axis_name="column"),
    axis_name="row",
)
rows, everything = both(board)
assert rows[:, 0].tolist() == [6.0, 22.0, 38.0] and everything.ravel().tolist() == [66.0] * 12
