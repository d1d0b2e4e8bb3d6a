"""`phalanx measure`: this computer as a system, for plans."""

import os
import subprocess
import sys

from phalanx.insight.systems import machine


def test_this_computer_is_a_system(tmp_path):
    path = tmp_path / "cpu.toml"
    words = ["measure", "--processes", "2", "--out", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", *words], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    found = machine(f"{path}:2")
    assert found.chips == 2 and found.system.shared
    assert found.system.operations["f32"] > 1e8 and found.system.bandwidth > 1e7
    assert found.system.link.bandwidth > 1e5 and 0 < found.system.link.latency < 10
    assert f"--on {path}:8" in done.stderr
