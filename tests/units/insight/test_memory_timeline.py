"""Memory over the course of a program: what is alive, and what is used again."""

import numpy as np

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.memory_timeline import course


def test_memory_over_the_course():
    def f(x):
        y = x @ x  # alive beside x
        z = y @ y
        return jnp.sum(z)

    program = ph.make_program(f)(np.ones((10, 10), np.float32))
    found = course(program, ["x"], [400.0], [False], 1)
    assert 1200 <= found.peak <= 1210
    assert {v.what.split(":")[0] for v in found.at_peak} >= {"x", "dot_general"}
    donated = course(program, ["x"], [400.0], [True], 1)
    assert donated.peak <= found.peak
    assert donated.alive[-1] < found.alive[-1]


def test_memory_that_is_used_again():
    x = np.ones((8, 100), np.float32)
    donated = course(ph.make_program(lambda p: p * 2 + 1)(x), ["p"], [3200.0], [True], 1)
    assert donated.peak == 3200
    stacked = ph.make_program(
        lambda: lax.scan(lambda c, _: (c, c), jnp.ones(100), None, length=50)[1]
    )()
    assert course(stacked, [], [], [], 1).peak == 50 * 400
    gathered = ph.make_program(ph.pmap(lambda x: lax.all_gather(x, "i"), "i"))(x)
    found = course(gathered, ["x"], [400.0], [False], 8)
    assert found.peak == 400 + 3200
    assert [v.what.split(":")[0] for v in found.at_peak] == ["x", "all_gather"]
