"""Programs as tutorials have them, as a user would run them, on one, two and four devices.

Those of ``tutorial`` are ours, and run on one device, and on four where they are checked; where
others lie beside the repository, they run as well.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = sorted((Path(__file__).parent / "tutorial").glob("*.py"))
SCRIPTS = [*OURS, *sorted((ROOT.parent / "shared" / "acceptance").glob("*.py"))]


def test_there_are_some():
    assert len(OURS) == 5


def run(devices, *words):
    environment = {
        **os.environ,
        "PHALANX_NUM_CPU_DEVICES": str(devices),
        "PHALANX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


RUNS = [(path, 1) for path in OURS] + [
    (path, n) for path in SCRIPTS[len(OURS) :] for n in (1, 2, 4)
]


@pytest.mark.parametrize(("script", "devices"), RUNS, ids=lambda x: getattr(x, "stem", str(x)))
def test_program_runs(script, devices):
    done = run(devices, str(script))
    assert done.returncode == 0, done.stderr
    assert "Error during" not in done.stdout, done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_nothing_is_wrong_with_a_program(script):
    done = run(4, "-m", "phalanx", "check", str(script))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing was found\n")
