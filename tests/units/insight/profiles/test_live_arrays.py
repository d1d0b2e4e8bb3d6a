"""The arrays that live while a program runs: which lines made them, and which leak."""

import pytest

import phalanx.numpy as jnp
from phalanx.insight.profiles.live_arrays import Census, Living


def test_lines_that_made_live_arrays():
    living = Living()
    with living.watching():
        kept = [jnp.ones((1000,)) + i for i in range(3)]
        (line,) = {s.rpartition(":")[0] for s in living_lines(living)}
    assert line == "test_live_arrays.py" and len(kept) == 3
    (table,) = [p for p in living.parts() if p.title == "live arrays by line"]
    mine = [row for row in table.rows if row[0].startswith("test_live_arrays.py")]
    assert mine and mine[0][1] >= 3 and mine[0][2] >= 3 * 4000


def living_lines(living):
    living.take(0.0)
    return [line for line in living.samples[-1].size if line != "before"]


def test_leaks_are_what_only_grows():
    samples = [
        Census(float(i), {"leak.py:1": 10.0 * i, "kept.py:2": 5.0, "work.py:3": 5.0 * (i % 3)}, {})
        for i in range(20)
    ]
    assert Living(samples).leaks == ["leak.py:1"]
    assert Living(samples[:3]).leaks == []
    assert Living([]).parts() == []


@pytest.mark.parametrize(
    "sizes, leaks",
    [
        ([0] * 30 + [2, 5, 7, 9, 12, 15], True),  # what came before any array does not count
        ([0, 0, 2, 5, 7, 9, 12, 15, 0], True),  # a function ended, and let go what it had kept
        ([1, 3, 2, 5, 4, 7, 6, 9, 8, 11], True),  # the line makes what does not stay, too
        ([0, 4, 8, 12, 16, 16, 16, 16, 16], False),  # what is loaded first and kept
        ([5, 10, 0, 5, 10, 0, 5, 10], False),
        ([8, 8, 8, 8], False),
        ([3, 6, 9], False),  # too few to say
    ],
)
def test_leaks_grow_until_they_are_let_go(sizes, leaks):
    samples = [Census(float(i), {"f.py:1": float(n)} if n else {}, {}) for i, n in enumerate(sizes)]
    assert Living(samples).leaks == (["f.py:1"] if leaks else [])
