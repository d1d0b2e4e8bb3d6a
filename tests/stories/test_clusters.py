"""The program that the recipes in examples/clusters start: it is ended, and goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phalanx.experimental import checkpoint

ROOT = Path(__file__).parents[2]
PATIENCE = 120  # seconds
pytestmark = pytest.mark.slow


@pytest.fixture
def launched(tmp_path):
    """Starts two processes of the program."""
    started = []

    def start():
        program = str(ROOT / "examples" / "clusters" / "train.py")
        known = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
        ours = {"PYTHONPATH": str(ROOT), "PHALANX_NUM_CPU_DEVICES": "1", "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-m", "phalanx", "launch", "-n", "2", program]
        started.append(
            subprocess.Popen(
                [*command, str(tmp_path / "runs")], env=known | ours, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
        )  # fmt: skip
        return started[-1]

    yield start
    for child in started:
        if child.poll() is None:
            child.terminate()
            child.wait(30)


def test_a_program_that_is_asked_to_end_saves_and_goes_on(launched, tmp_path):
    first = launched()
    began = time.monotonic()
    while not checkpoint.steps(tmp_path / "runs"):
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.005)
    first.send_signal(signal.SIGTERM)
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 75, output
    reached = checkpoint.latest(tmp_path / "runs")
    assert 100 <= reached < 1000
    second = launched()
    output, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, output
    assert "loss 0.000000 after 1000 steps" in output
    assert checkpoint.latest(tmp_path / "runs") == 1000
