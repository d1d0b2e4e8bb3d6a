"""Profiles: what was recorded, by line and device, and what the host did."""

import importlib
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.errors import RuntimeFailure
from phalanx.insight.profiles.host_phases import phases_in, spent, why_idle
from phalanx.insight.profiles.profile import Profile, Span, profiling
from phalanx.run.backend import Kernel

DOT = Kernel("dot.1", "dot", 1, 1, "/path/train.py:3 (f)", "jit_f")
SUM = Kernel("all-reduce.2", "all-reduce", 1, 1, "/path/train.py:4 (f)", "jit_f")
SPANS = [
    Span("cpu 0", "jit_f", "dot.1", 0.0, 2.0), Span("cpu 1", "jit_f", "dot.1", 0.0, 1.0),
    Span("cpu 1", "jit_f", "all-reduce.2", 1.0, 3.0),
    Span("cpu 0", "jit_f", "all-reduce.2", 2.0, 3.0),
    Span("cpu 0", "jit_f", "dot.1", 5.0, 6.0), Span("cpu 0", "other", "copy.3", 5.5, 6.5),
]  # fmt: skip


class Event(NamedTuple):
    name: str
    start_ns: int
    duration_ns: int


class Line(NamedTuple):
    events: list


class Plane(NamedTuple):
    lines: list


@pytest.fixture
def report():
    kernels = {("jit_f", "dot.1"): DOT, ("jit_f", "all-reduce.2"): SUM}
    return Profile(SPANS, kernels, 10.0).report()


def rows(report, part):
    return report[part].as_json()["rows"]


def test_times_are_added_up(report):
    first, second, third = rows(report, "slowest lines")
    assert (first["line"], first["runs"], first["time"]) == ("train.py:3 (f)", 3, 4.0)
    assert (second["instructions"], second["time"]) == ("all-reduce", 3.0)
    assert (third["line"], third["share"]) == ("no line", 1 / 8)
    zero, one = rows(report, "devices")
    assert (zero["busy"], zero["idle"], zero["communicating"]) == (4.5, 2.0, 1.0)
    assert (one["busy"], one["idle"], one["communicating"]) == (3.0, 0.0, 2.0)
    (exchange,) = rows(report, "collectives")
    assert (exchange["longest"], exchange["shortest"]) == (2.0, 1.0)
    (gap,) = rows(report, "the longest gaps")
    assert (gap["at"], gap["gap"]) == (3.0, 2.0)
    assert "timeline" in str(report) and "train.py:3" in report.html()


def test_what_runs_is_recorded():
    def f(x):
        return jnp.sin(x @ x)

    x = jnp.ones((200, 200), np.int32)  # of which a product keeps its name
    with profiling() as profile:
        for _ in range(3):
            ph.jit(f)(x).block_until_ready()
        step = ph.pmap(lambda x: lax.psum(x, "i"), "i")
        step(np.ones((ph.device_count(), 1000), np.float32)).block_until_ready()
    lines = rows(profile.report(), "slowest lines")
    product = [row for row in lines if "dot" in row["instructions"]]
    assert product and all("test_profile.py" in row["line"] for row in product)
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


def test_lines_of_what_was_compiled_before_are_known():
    function = lambda x: x @ x  # noqa: E731
    square = ph.jit(function)
    x = square(jnp.ones((32, 32)))
    with profiling() as profile:
        ph.block_until_ready((square(x), 2 * x))
    lines = {row["line"] for row in profile.report()["slowest lines"].as_json()["rows"]}
    first = function.__code__.co_firstlineno
    assert f"test_profile.py:{first} (<lambda>)" in lines
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


def test_phases_count_for_the_innermost():
    events = [
        Event("phalanx: recording", 0, 100), Event("phalanx: tracing", 10, 40),
        Event("phalanx: importing", 20, 10),
        Event("some PjRtLoadedExecutable::Execute (f)", 60, 20),
        Event("Transpose", 61, 2),
    ]  # fmt: skip
    other = Line([Event("phalanx: tracing", 0, 500)])  # of another thread
    phases = phases_in([Plane([other, Line(events)])])
    assert [(p.name, round(p.start * 1e9), round(p.stop * 1e9)) for p in phases] == [
        ("Python", 0, 10), ("tracing", 10, 20), ("importing", 20, 30), ("tracing", 30, 50),
        ("Python", 50, 60), ("launching programs", 60, 80), ("Python", 80, 100),
    ]  # fmt: skip
    assert spent(phases)["tracing"] == pytest.approx(30e-9)
    assert "Python (40 %) and tracing (30 %)" in why_idle(spent(phases))


def test_the_host_has_a_section_and_a_row():
    with profiling() as profile:
        importlib.import_module("phalanx.base.phases")  # known already
        __import__("this")
        x = ph.jit(lambda x: jnp.cos(x) @ x + 17)(np.ones((50, 50), np.float32))
        x.block_until_ready()
    report = profile.report()
    seconds = {row["phase"]: row["time"] for row in rows(report, "host")}
    wanted = {"importing", "tracing", "lowering", "launching programs", "Python"}
    assert wanted <= seconds.keys() and {"compiling", "loading from the cache"} & seconds.keys()
    assert sum(seconds.values()) <= profile.seconds
    assert report["timeline"].rows[0][0] == "host"
    assert "The host was busy with" in report.verdict and "host" in str(report)


def test_convolutions_have_their_line_where_the_compiler_forgets_it():
    def f(x, w):
        return lax.conv(x, w, (1, 1), "SAME").sum()

    with profiling() as profile:
        ph.jit(ph.grad(f, 1))(jnp.ones((1, 2, 9, 9)), jnp.ones((2, 2, 3, 3))).block_until_ready()
    lines = {row["line"] for row in rows(profile.report(), "slowest lines")}
    assert any(line.startswith("test_profile.py") and "(f)" in line for line in lines)
