"""torchrun starts the processes, and in its elastic mode goes on with those that are left."""

import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from engines.programs import PATIENCE, environment, run, told, wait_for, write
from engines.training import alone, attempts, losses

pytest.importorskip("torch", reason="./dev engines --torch installs it")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
ONE = """
import phalanx
from pathlib import Path
from engines.training import train

phalanx.distributed.initialize(initialization_timeout=60)
place = Path(__file__).parent


def lose(step):
    if step == 7 and phalanx.process_index() == 1 and not (place / "lost").exists():
        (place / "lost").touch()
        os._exit(9)


train(place, lose)
"""
MACHINE = """
import phalanx, time
from pathlib import Path
from engines.training import train

phalanx.distributed.initialize(initialization_timeout=60)
place = Path(__file__).parent


def lose(step):
    if step == 7 and not (place / "lost").exists():
        tell("all", os.getpid(), os.getppid())
        while not (place / "lost").exists():
            time.sleep(0.05)


train(place, lose)
"""


def test_processes_that_are_started_again_go_on_from_the_last_checkpoint(tmp_path):
    options = ["--nproc-per-node", "3", "--max-restarts", "1"]
    done = run([*TORCHRUN, *options, str(write(tmp_path, ONE))])
    assert done.returncode == 0, done.stderr
    for process in range(3):
        assert attempts(tmp_path, process) == [(3, 0), (3, 6)]
        np.testing.assert_allclose(losses(tmp_path, process), alone(), rtol=1e-5)


def test_a_run_goes_on_when_a_machine_is_lost(tmp_path):
    """Two agents, each of which stands for a machine; the second goes with its processes."""
    script = write(tmp_path, MACHINE)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    command = [
        *TORCHRUN, "--nnodes", "1:2", "--nproc-per-node", "2", "--max-restarts", "3",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "run",
        "--rdzv-conf", "last_call_timeout=10,keep_alive_interval=1,keep_alive_max_attempt=3",
        str(script),
    ]  # fmt: skip
    agents = [subprocess.Popen(command, env=environment())]
    try:
        wait_for(lambda: listens(port))  # the first agent has what all meet at
        agents.append(subprocess.Popen(command, env=environment()))
        wait_for(lambda: len(told(tmp_path).get("all", [])) == 4)
        workers = [map(int, line.split()) for line in told(tmp_path)["all"]]
        lost = [worker for worker, agent in workers if agent == agents[1].pid]
        assert len(lost) == 2
        for process in (agents[1].pid, *lost):
            os.kill(process, signal.SIGKILL)
        (tmp_path / "lost").touch()
        assert agents[0].wait(PATIENCE) == 0
    finally:
        for agent in agents:
            agent.terminate()
            agent.wait(30)
    for process in range(2):
        assert attempts(tmp_path, process) == [(4, 0), (2, 6)]
        np.testing.assert_allclose(losses(tmp_path, process), alone(), rtol=1e-5)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
