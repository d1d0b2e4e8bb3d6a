"""Derivatives of choices, where the compiler makes what is chosen from again, in another loop.

A product and a sum are rounded together or not as it suits a loop. So what is made twice can
differ in the last bit, and an element be compared with an extremum that it is not.
"""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.compare import close_to_scale as close
from tests.laws.slopes import along
from tests.laws.test_programs import dot

pytestmark = pytest.mark.usefixtures("x64")

LANES = 5
rng = np.random.default_rng(7)
M, V = rng.uniform(-1, 1, (LANES, 3, 4)), rng.uniform(-1, 1, (LANES, 4))
TANGENTS = rng.uniform(-1, 1, M.shape), rng.uniform(-1, 1, V.shape)
SLOPE, WEIGHTS = np.linspace(1, 0.5, 4), rng.uniform(-1, 1, (3, 4))
PAIRS = np.array([0, 0, 1, 1])

# By a name: what is chosen from what is computed of two vectors, by us and by NumPy.
CHOICES = {
    "max": (lambda a, b: jnp.max(1 + a * b), lambda a, b: np.max(1 + a * b)),
    "min": (lambda a, b: jnp.min(1 + a * b), lambda a, b: np.min(1 + a * b)),
    "min, used twice": (lambda a, b: jnp.min(1 + a * b) * b, lambda a, b: np.min(1 + a * b) * b),
    "max of rows": (
        lambda a, b: jnp.max(jnp.outer(a, b) + 1, 1),
        lambda a, b: np.max(np.outer(a, b) + 1, 1),
    ),
    "maximum": (
        lambda a, b: jnp.maximum(1 + a * b, b),
        lambda a, b: np.maximum(1 + a * b, b),
    ),
    "hypot": (lambda a, b: jnp.hypot(a, b), lambda a, b: np.hypot(a, b)),
    "cummax": (
        lambda a, b: lax.cummax(1 + a * b),
        lambda a, b: np.maximum.accumulate(1 + a * b),
    ),
    "segment_max": (
        lambda a, b: phalanx.ops.segment_max(1 + a * b, PAIRS)[PAIRS],
        lambda a, b: (1 + a * b).reshape(2, 2).max(1)[PAIRS],
    ),
    "at[].min": (
        lambda a, b: (a * b).at[PAIRS].min(a * a + b),
        lambda a, b: np.concatenate(
            [np.minimum(a * b, [*(a * a + b).reshape(2, 2).min(1), 9, 9])[:2], (a * b)[2:]]
        ),
    ),
    "ptp": (lambda a, b: jnp.ptp(1 + a * b), lambda a, b: np.ptp(1 + a * b)),
    "norm": (
        lambda a, b: jnp.linalg.norm(1 + a * b, np.inf),
        lambda a, b: np.max(np.abs(1 + a * b)),
    ),
}


@pytest.mark.parametrize("quick", [False, True], ids=["optimized", "quick"])
@pytest.mark.parametrize("name", CHOICES)
def test_gradients_of_choices_from_what_is_computed_in_the_same_program(name, quick):
    ours, oracle = CHOICES[name]

    def lane(m, v, choose):
        return (m * choose(1 + v * SLOPE, m[0]) * WEIGHTS).sum()

    def lanes(m, v):
        return np.array([lane(m[i], v[i], oracle) for i in range(LANES)])

    expected = along(lanes, (M, V), TANGENTS)
    with phalanx.config.override(disable_most_optimizations=quick):
        gradients = phalanx.grad(lambda m, v: lane(m, v, ours), (0, 1))
        for mapped in (phalanx.jit(phalanx.vmap(gradients)), phalanx.pmap(gradients)):
            found = mapped(M, V)
            each = [dot([g[i] for g in found], [t[i] for t in TANGENTS]) for i in range(LANES)]
            close(np.stack(each), expected, 1e-6)
