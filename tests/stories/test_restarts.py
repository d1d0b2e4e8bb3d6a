"""Programs that are started again when a process is lost, on this machine as on several."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.stories.test_processes import launch  # noqa: F401  (a fixture)

ROOT = Path(__file__).parents[2]
PATIENCE = 150  # seconds

STORY = """
import os, time
import numpy as np
import phalanx
from phalanx import lax
phalanx.distributed.initialize(initialization_timeout=100)
me, attempt = phalanx.process_index(), os.environ["PHALANX_RESTART"]
step = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
x = np.ones((1, 2), np.float32)
try:
    for i in range(50):
        phalanx.block_until_ready(step(x))
        if attempt == "0" and me == 1 and i == 5:
            os._exit(7)
except phalanx.errors.PeerLost:
    if me == 0:
        time.sleep(SAVING)  # as a handler does that saves what this process has
    raise
print(f"process {me} is done in attempt {attempt}", flush=True)
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return unused.getsockname()[1]


@pytest.fixture
def machines(tmp_path):
    """Starts one launcher for each of two machines, and tells how they end."""
    started = []

    def run(story, *options):
        script = tmp_path / "story.py"
        script.write_text(textwrap.dedent(story))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "PHALANX_NUM_CPU_DEVICES": "1",
            "PHALANX_TOKEN": "a secret",
            "JAX_PLATFORMS": "cpu",
        }
        meeting = ["--nnodes", "2", "--coordinator", f"127.0.0.1:{free_port()}"]
        for rank in range(2):
            each = [*meeting, "--node-rank", str(rank), *options, str(script)]
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "phalanx", "launch", *each],
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        outputs = [child.communicate(timeout=PATIENCE)[0] for child in started]
        return [child.returncode for child in started], outputs

    yield run
    for child in started:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)  # it ends its own
            child.wait(30)


def test_who_is_back_early_waits_for_those_that_still_save(machines):
    """The launcher of the second machine starts its process again while the first one saves."""
    statuses, outputs = machines(STORY.replace("SAVING", "4"), "--max-restarts", "1")
    assert statuses == [0, 0], "\n".join(outputs)
    for me, output in enumerate(outputs):
        assert f"[{me}] process {me} is done in attempt 1" in output


def test_who_is_killed_before_the_runtimes_meet_is_told_of(tmp_path):
    """They wait for all of them, where neither an exception nor a signal reaches them."""
    script = tmp_path / "story.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, sys
        import phalanx
        from phalanx.api import distributed
        if os.environ["PHALANX_PROCESS_ID"] == "1":
            join = distributed.join
            def joined(*arguments):
                join(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            distributed.join = joined
        try:
            distributed.initialize()
        except phalanx.errors.PeerLost as e:
            print(e, distributed.is_initialized(), flush=True)
        """)
    )
    ended = subprocess.run(
        [sys.executable, "-m", "phalanx", "launch", "-n", "3", str(script)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 137, ended.stderr
    told = [line for line in ended.stdout.splitlines() if "distributed.initialize" in line]
    assert len(told) == 2, ended.stdout
    for line in told:
        assert "process 1" in line and "it was killed by SIGKILL" in line and line.endswith("False")
    assert "SIGTERM" not in ended.stderr and "SIGABRT" not in ended.stderr


def test_a_process_of_which_nothing_tells_others_is_alone():
    alone = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PHALANX"))}
    story = """
        import phalanx
        phalanx.distributed.initialize()
        print(phalanx.process_count(), phalanx.distributed.is_initialized())
        print(phalanx.numpy.arange(3) + phalanx.process_index())
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(story)],
        env=alone | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["1 False", "[0 1 2]"]
    assert "nothing tells of other processes, so this one computes alone" in ended.stderr


@pytest.fixture
def alone():
    """Runs a program in two processes without a launcher, so that process 0 coordinates."""
    started = []

    def run(program):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")} | {
            "PYTHONPATH": str(ROOT),
            "PHALANX_NUM_CPU_DEVICES": "1",
            "JAX_PLATFORMS": "cpu",
            "PHALANX_COORDINATOR_ADDRESS": f"127.0.0.1:{free_port()}",
            "PHALANX_NUM_PROCESSES": "2",
        }
        for process in range(2):
            started.append(
                subprocess.Popen(
                    [sys.executable, "-c", ALONE + textwrap.dedent(program)],
                    env=environment | {"PHALANX_PROCESS_ID": str(process)},
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
            )  # fmt: skip
        found = [child.communicate(timeout=PATIENCE) for child in started]
        return [child.returncode for child in started], found

    yield run
    for child in started:
        child.kill()
        child.wait(10)


ALONE = """
import os, signal
import numpy as np
import phalanx
from phalanx import lax
phalanx.distributed.initialize()
me = phalanx.process_index()
add = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
"""


def test_the_standard_output_is_for_what_programs_print(alone):
    ends, found = alone("print(add(np.ones((1, 2), np.float32)).tolist())")
    assert ends == [0, 0], found
    assert [output for output, _ in found] == ["[[2.0, 2.0]]\n"] * 2


def test_who_outlives_the_coordinator_still_computes_for_itself(alone):
    """The runtime's client would end the process as soon as its service is gone."""
    ends, found = alone(
        """
        x = add(np.ones((1, 2), np.float32))
        if me == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                add(x)
        except phalanx.errors.PeerLost as e:
            print(e.process, flush=True)
        print(float(phalanx.numpy.arange(1000.0).sum()), flush=True)
        """
    )
    assert ends == [-signal.SIGKILL, 0], found
    assert found[1][0].split() == ["0", "499500.0"]


def test_a_process_that_is_forked_takes_no_part(launch):  # noqa: F811
    ended = launch(
        2,
        """
        f = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
        x = np.ones((1, 2), np.float32)
        f(x)
        forked = os.fork()
        if forked == 0:
            raise SystemExit(5)
        tell(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]), f(x).tolist())
        """,
    )
    assert ended.status == 0, ended.output
    assert ended.told == {me: ["5 [[2.0, 2.0]]"] for me in (0, 1)}
