"""Programs whose processes are on machines of their own, as far as the network tells.

Each process gets a namespace of the network, with an address; they meet at a bridge.
"""

import os
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

from tests.stories.test_processes import PATIENCE, ROOT

STORY = """
import os, warnings
import numpy as np
import phalanx
from phalanx import lax
phalanx.distributed.initialize(heartbeat_timeout_seconds=3)
me = phalanx.process_index()
told = open(f"{os.path.dirname(__file__)}/told-{me}", "a", buffering=1)
warnings.showwarning = lambda message, kind, *rest: print(kind.__name__, message, file=told)
step = phalanx.pmap(lambda x: lax.pmean(x, "i"), "i")
x = step(step(np.full((1, 3), me, np.float32)))
print("computed", x[0, 0], file=told)
try:
    while True:
        x = step(x)
        x.block_until_ready()
except phalanx.errors.PeerLost as e:
    print(e.process, e, file=told)
print("here", phalanx.numpy.arange(3) + 1, file=told)
"""


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def machines():
    """Two namespaces with addresses 10.213.0.1 and 10.213.0.2, and the wire of each."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip command that makes namespaces of the network")
    mark = f"phalanx{os.getpid()}"
    names = [f"{mark}-{i}" for i in (0, 1)]
    made = []
    try:
        for name in (mark, *names):
            run("ip", "netns", "add", name)
            made.append(name)
        run("ip", "-n", mark, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", mark, "link", "set", "bridge", "up")
        for i, name in enumerate(names):
            wire = ["link", "add", f"wire{i}", "type", "veth", "peer", "name", "eth0"]
            run("ip", "-n", mark, *wire, "netns", name)
            run("ip", "-n", mark, "link", "set", f"wire{i}", "master", "bridge", "up")
            run("ip", "-n", name, "addr", "add", f"10.213.0.{i + 1}/24", "dev", "eth0")
            for link in ("eth0", "lo"):
                run("ip", "-n", name, "link", "set", link, "up")
        yield names, lambda i: run("ip", "-n", mark, "link", "set", f"wire{i}", "down")
    except subprocess.CalledProcessError as e:
        pytest.skip(f"namespaces of the network cannot be made here: {e.stderr.strip()}")
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def test_when_the_network_is_cut_each_side_says_who_is_lost(machines, tmp_path):
    names, cut = machines
    script = tmp_path / "story.py"
    script.write_text(textwrap.dedent(STORY))
    told = [tmp_path / f"told-{i}" for i in (0, 1)]
    children = []
    try:
        for i, name in enumerate(names):
            environment = os.environ | {
                "PYTHONPATH": str(ROOT),
                "PHALANX_NUM_CPU_DEVICES": "1",
                "JAX_PLATFORMS": "cpu",
                "PHALANX_COORDINATOR_ADDRESS": "10.213.0.1:8476",
                "PHALANX_NUM_PROCESSES": "2",
                "PHALANX_PROCESS_ID": str(i),
            }
            child = ["ip", "netns", "exec", name, sys.executable, str(script)]
            children.append(subprocess.Popen(child, env=environment))
        end = time.monotonic() + PATIENCE
        while not all(path.exists() and "computed" in path.read_text() for path in told):
            assert all(child.poll() is None for child in children)
            assert time.monotonic() < end
            time.sleep(0.02)
        listening = [run("ip", "netns", "exec", name, "ss", "-Hltn") for name in names]
        cut(1)
        assert [child.wait(PATIENCE) for child in children] == [0, 0]
    finally:
        for child in children:
            child.kill()
            child.wait()
    for i in (0, 1):
        where = [line.split()[3].rpartition(":")[0] for line in listening[i].splitlines()]
        assert set(where) == {f"10.213.0.{i + 1}"}
        computed, *late, lost, here = told[i].read_text().splitlines()
        assert computed == "computed 0.5"
        assert late
        assert all(line.startswith(f"PeerSlow process {1 - i} ") for line in late)
        assert lost.startswith(f"{1 - i} pmap_<lambda> of 1, 1 rows (launch ")
        assert here == "here [1 2 3]"
