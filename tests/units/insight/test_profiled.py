"""Profiles: what was recorded, by line and device; the arrays that live, and those that leak."""

import os
import subprocess
import sys

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.errors import RuntimeFailure
from phalanx.insight.living import Census, Living
from phalanx.insight.profiled import Profile, Span, profiling
from phalanx.run.backend import Kernel

DOT = Kernel("dot.1", "dot", 1, 1, "/path/train.py:3 (f)", "jit_f")
SUM = Kernel("all-reduce.2", "all-reduce", 1, 1, "/path/train.py:4 (f)", "jit_f")
SPANS = [
    Span("cpu 0", "jit_f", "dot.1", 0.0, 2.0), Span("cpu 1", "jit_f", "dot.1", 0.0, 1.0),
    Span("cpu 1", "jit_f", "all-reduce.2", 1.0, 3.0),
    Span("cpu 0", "jit_f", "all-reduce.2", 2.0, 3.0),
    Span("cpu 0", "jit_f", "dot.1", 5.0, 6.0), Span("cpu 0", "other", "copy.3", 5.5, 6.5),
]  # fmt: skip


@pytest.fixture
def report():
    kernels = {("jit_f", "dot.1"): DOT, ("jit_f", "all-reduce.2"): SUM}
    return Profile(SPANS, kernels, 10.0).report()


def rows(report, part):
    return report[part].as_json()["rows"]


def test_times_are_added_up(report):
    first, second, third = rows(report, "lines, the slowest first")
    assert (first["line"], first["runs"], first["time"]) == ("train.py:3 (f)", 3, 4.0)
    assert (second["instruction"], second["time"]) == ("all-reduce", 3.0)
    assert (third["line"], third["share"]) == ("copy.3", 1 / 8)
    zero, one = rows(report, "devices")
    assert (zero["busy"], zero["gaps"], zero["exchanging"]) == (4.5, 2.0, 1.0)
    assert (one["busy"], one["gaps"], one["exchanging"]) == (3.0, 0.0, 2.0)
    (exchange,) = rows(report, "collectives")
    assert (exchange["the longest"], exchange["the shortest"]) == (2.0, 1.0)
    (gap,) = rows(report, "the longest gaps")
    assert (gap["at"], gap["gap"]) == (3.0, 2.0)
    assert "timeline" in str(report) and "train.py:3" in report.html()


def test_what_runs_is_recorded():
    def f(x):
        return jnp.sin(x @ x)

    x = jnp.ones((200, 200))
    with profiling() as profile:
        for _ in range(3):
            ph.jit(f)(x).block_until_ready()
        step = ph.pmap(lambda x: lax.psum(x, "i"), "i")
        step(np.ones((ph.device_count(), 1000), np.float32)).block_until_ready()
    lines = rows(profile.report(), "lines, the slowest first")
    product = [row for row in lines if row["instruction"] == "dot"]
    assert product and all("test_profiled.py" in row["line"] for row in product)
    assert sum(row["runs"] for row in product) >= 3
    if ph.device_count() > 1:
        (exchanged,) = rows(profile.report(), "collectives")
        assert exchanged["runs"] == ph.device_count()
    assert len(rows(profile.report(), "devices")) == ph.device_count()


def test_nothing_ran():
    with profiling() as profile:
        pass
    assert rows(profile.report(), "devices") == []
    assert "none" in str(profile.report()) and "nothing" not in profile.report().json()


def test_lines_that_made_live_arrays():
    living = Living()
    with living.watching():
        kept = [jnp.ones((1000,)) + i for i in range(3)]
        (line,) = {s.rpartition(":")[0] for s in living_lines(living)}
    assert line == "test_profiled.py" and len(kept) == 3
    (table,) = [p for p in living.parts() if p.title == "live arrays by line"]
    mine = [row for row in table.rows if row[0].startswith("test_profiled.py")]
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


def test_lines_of_what_was_compiled_before_are_known():
    function = lambda x: x @ x  # noqa: E731
    square = ph.jit(function)
    x = square(jnp.ones((32, 32)))
    with profiling() as profile:
        ph.block_until_ready((square(x), 2 * x))
    lines = {row["line"] for row in profile.report()["lines, the slowest first"].as_json()["rows"]}
    first = function.__code__.co_firstlineno
    assert f"test_profiled.py:{first} (<lambda>)" in lines
    assert not any("test_lines_of" in line for line in lines)  # operations are shared


BEFORE_DEVICES = """
import phalanx
from phalanx.insight import profiling
from phalanx.run.runtime import backend
with profiling() as profile:
    print(backend().started())
    phalanx.jit(lambda x: x @ x)(phalanx.numpy.ones((32, 32))).block_until_ready()
print(len(profile.spans) > 0)
"""


def test_recording_starts_no_device():
    """Processes that are launched together join the others first, and are recorded, too."""
    command = [sys.executable, "-c", BEFORE_DEVICES]
    env = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (done.stdout.split(), done.stderr) == (["[]", "True"], "")


def test_what_records_already_is_said():
    said = pytest.raises(RuntimeFailure, match=r"`phalanx profile`.*One can do so")
    with profiling(), said, profiling():
        pass
