"""The suites of libraries: a library whose tests pass, fail, or pass under jax alone."""

import os
import subprocess
import sys
from pathlib import Path

from libraries.suites import OURS, PEER, differing, row

ROOT = Path(__file__).parents[1]
TESTS = """
import sys
import jax.numpy as jnp

def test_both():
    assert jnp.arange(3).sum() == 3

def test_neither():
    assert jnp.arange(3).sum() == 4

def test_the_peer_alone():
    assert not any(name.startswith("phalanx.run") for name in sys.modules)
"""


def test_a_library_is_run_under_both(tmp_path):
    source = tmp_path / "tiny-1.0"
    source.mkdir()
    (source / "some_test.py").write_text(TESTS)
    table, results = tmp_path / "table.md", tmp_path / "results"
    command = [sys.executable, "-m", "libraries.suites", "tiny", "--sources", str(tmp_path)]
    done = subprocess.run(
        [*command, "--results", str(results), "--out", str(table)],
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "tiny: some_test.py::some_test::test_the_peer_alone: failed" in done.stdout
    assert table.read_text().splitlines()[-1] == "| tiny-1.0 | 2 | 1 | 50.0% |"
    assert {path.parent.name for path in results.rglob("*.xml")} == {PEER, OURS}


def test_tests_that_did_not_run_differ():
    peer = {"a": "passed", "b": "passed", "c": "failed", "d": "skipped"}
    assert differing(peer, {"a": "passed"}) == ["b"]
    assert row("tiny-1.0", peer, {}) == "| tiny-1.0 | 2 | 0 | 0.0% |"
