"""The benchmarks run: both libraries, every case once, and the table has all rows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import LIBRARIES, spell, table
from benchmarks.cases import CASES, DEVICES

ROOT = Path(__file__).parents[1]
SLOW = {case.name for case in CASES if "training step" in case.name}


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_one_case_of_both_libraries(tmp_path):
    file = tmp_path / "samples.json"
    done = run("benchmarks", "--quick", "--only", "eager operation", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    samples = json.loads(file.read_text())
    assert list(samples) == ["import", "eager operation"]
    for taken in samples.values():
        assert set(taken) == set(LIBRARIES)
        assert all(seconds > 0 for times in taken.values() for seconds in times)
    assert "eager operation" in done.stdout


def test_every_quick_case_runs_with_phalanx():
    names = [case.name for case in CASES if case.name not in SLOW]
    done = run("benchmarks.worker", "phalanx", "0.01", *names)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)[0] for line in done.stdout.splitlines()] == ["import", *names]


def test_a_library_that_failed_has_no_ratio():
    shown = table({"x[i]": {"phalanx": [1.0, 2.0, 4.0]}}, DEVICES)
    cells = [next(iter(column.cells)) for column in shown.columns]
    assert cells == [r"x\[i]", "2 s", "-", "-", "-"]


@pytest.mark.parametrize(
    ("seconds", "spelled"), [(2.0, "2 s"), (0.25, "250 ms"), (3e-6, "3 us"), (4e-8, "0.04 us")]
)
def test_times_have_units(seconds, spelled):
    assert spell(seconds) == spelled
