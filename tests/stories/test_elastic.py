"""Runs that lose processes, or a whole machine, and go on with those that are left."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import phalanx
from tests.stories.test_processes import launch  # noqa: F401  (a fixture)
from tests.stories.test_restarts import free_port

ROOT = Path(__file__).parents[2]
PATIENCE = 60  # seconds
STEPS = 12

# eight lanes, each with rows of its own; what a step gives is in the file of its process
TRAINING = """
import numpy as np
import phalanx
from phalanx import lax

source = np.random.default_rng(0)
XS = source.normal(size=(8, 16, 4)).astype(np.float32)
YS = source.normal(size=(8, 16)).astype(np.float32)

def weights():
    source = np.random.default_rng(1)
    return {"in": source.normal(size=(4, 8)).astype(np.float32),
            "out": source.normal(size=8).astype(np.float32)}

def loss(w, x, y):
    return phalanx.numpy.mean((phalanx.numpy.tanh(x @ w["in"]) @ w["out"] - y) ** 2)

def step(w, x, y):
    value, slope = lax.pmean(phalanx.value_and_grad(loss)(w, x, y), "i")
    return {k: w[k] - 0.1 * slope[k] for k in w}, value

def stepping(reproducible):
    return phalanx.pmap(
        step, "i", in_axes=(None, 0, 0), out_axes=None, reproducible=reproducible
    )
"""
here: dict = {}
exec(TRAINING, here)  # the script of processes, here

ELASTIC = """
import os, signal, time
from phalanx.experimental import elastic
attempt = int(os.environ["PHALANX_RESTART"])
step, mine = stepping(REPRODUCIBLE), phalanx.process_rows(8)
state = elastic.resume({"w": weights(), "step": 0})
tell("attempt", attempt, count, state["step"])
while state["step"] < STEPS:
    w, value = step(state["w"], XS[mine], YS[mine])
    tell("loss", state["step"], np.asarray(value).item().hex())
    if (attempt, state["step"], me) == (0, FATAL, VICTIM):
        os.kill(os.getpid(), signal.SIGKILL)
    state = {"w": w, "step": state["step"] + 1}
    elastic.snapshot(state)
tell("end", "".join(np.asarray(x).tobytes().hex() for x in phalanx.tree.leaves(w)))
"""


def alone(reproducible):
    """The losses and the weights of a run that loses nobody, here."""
    step, w, losses = here["stepping"](reproducible), here["weights"](), []
    for _ in range(STEPS):
        w, value = step(w, here["XS"], here["YS"])
        losses.append(float(value))
    return losses, "".join(np.asarray(x).tobytes().hex() for x in phalanx.tree.leaves(w))


def written(**names):
    story = TRAINING + ELASTIC
    for name, value in names.items():
        story = story.replace(name, repr(value))
    return story


@pytest.mark.parametrize("reproducible", [False, True])
def test_a_run_that_loses_a_process_goes_on_with_the_others(launch, request, reproducible):  # noqa: F811
    """Four processes, eight lanes; one is killed at a drawn step, and three finish. The losses are
    those of a run left alone: up to rounding, and to the bit where lanes are reproducible."""
    draw = random.Random(request.config.getoption("hypothesis_seed"))
    fatal, victim = draw.randrange(1, STEPS), draw.randrange(4)
    story = written(STEPS=STEPS, FATAL=fatal, VICTIM=victim, REPRODUCIBLE=reproducible)
    ended = launch(4, story, "--elastic", "2:", devices=2)
    assert ended.status == 0, ended.output
    assert f"process {victim} was killed by SIGKILL" in ended.output
    assert "lost 1 of 4 processes; starting again with 3" in ended.output
    losses, weights = alone(reproducible)
    for told in (ended.told[0], ended.told[1], ended.told[2]):
        words = [line.split() for line in told]
        attempts = [line[1:] for line in words if line[0] == "attempt"]
        assert attempts[0] == ["0", "4", "0"]
        number, count, first = attempts[1]
        assert (number, count) == ("1", "3")
        assert int(first) in (fatal - 1, fatal)  # that of the last step may not have been sent
        again = words[words.index(["attempt", *attempts[1]]) :]
        steps = [int(line[1]) for line in again if line[0] == "loss"]
        assert steps == [*range(int(first), STEPS)]
        found = [(int(line[1]), float.fromhex(line[2])) for line in words if line[0] == "loss"]
        for step, value in found:
            if reproducible:
                assert value == losses[step], (step, told)
            else:
                np.testing.assert_allclose(value, losses[step], rtol=1e-5)
        if reproducible:
            assert words[-1] == ["end", weights]


def test_processes_with_different_states(launch):  # noqa: F811
    ended = launch(
        2,
        """
        from phalanx.experimental import elastic
        lanes = phalanx.pmap(lambda x: x + me)(np.ones((2 + me, 3)))
        for state in (
            {"w": np.ones(2 + me)}, {"w": np.float32([1, me])}, {"step": 3 + me},
            {"ab"[me]: 1}, {"w": jnp.ones(3), "rows": lanes, "step": 3},
        ):
            try:
                elastic.snapshot(state)
                tell("kept")
            except ValueError as e:
                tell(type(e).__name__, e)
        found = elastic.resume({"w": jnp.zeros(3), "rows": lanes * 0, "step": 0})
        tell(np.array_equal(found["rows"], lanes), found["w"].tolist(), found["step"])
        """,
        "--elastic",
        "1:",
    )
    assert ended.status == 0, ended.output
    for told in ended.told.values():
        shape, values, number, names, kept, found = told
        assert "TreeError elastic.snapshot: tree['w'] differs: it is float64[2] in proc" in shape
        same = r"must be the same in all processes, and is"
        checksum = r"float32\[2\] with checksum [0-9a-f]{8} in process"
        assert re.search(rf"tree\['w'\] {same} {checksum} 0 and {checksum} 1; multi", values)
        assert f"tree['step'] {same} 3 in process 0 and 4 in process 1; multihost" in number
        assert "where process 0 has tree['a'], process 1 has tree['b']" in names
        assert kept == "kept"
        assert found == "True [1.0, 1.0, 1.0] 3"


def test_too_few_are_left(launch):  # noqa: F811
    ended = launch(
        2,
        "if me == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        'phalanx.pmap(lambda x: lax.psum(x, "i"), "i")(np.ones((1, 2)))',
        "--elastic",
        "2:",
    )
    assert ended.status == 137, ended.output
    told = "lost 1 of 2 processes: 1 left, and --elastic needs 2"
    assert told in ended.output


def test_a_spare_process_takes_the_place_of_one_that_is_lost(launch):  # noqa: F811
    ended = launch(
        3,
        """
        attempt = os.environ["PHALANX_RESTART"]
        tell(attempt, count, os.environ["PHALANX_LOCAL_PROCESS_ID"])
        if attempt == "0" and me == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        tell(phalanx.pmap(lambda x: lax.psum(x, "i"), "i")(np.ones((1, 2)))[0, 0])
        """,
        "--elastic",
        "2:2",
    )
    assert ended.status == 0, ended.output
    assert ended.told[0] == ["0 2 0", "1 2 1", "2.0"]
    assert ended.told[1] == ["0 2 1", "1 2 2", "2.0"]


def test_who_is_back_too_late_is_lost(launch, monkeypatch):  # noqa: F811
    """A process that was stopped for so long that it counts as lost ends by an exception, too."""
    monkeypatch.setenv("SILENCE", "4")
    ended = launch(
        3,
        """
        import subprocess
        attempt = os.environ["PHALANX_RESTART"]
        tell(attempt, count, os.environ["PHALANX_LOCAL_PROCESS_ID"])
        step = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
        tell(step(np.ones((1, 2)))[0, 0])
        if attempt == "0" and me == 1:
            subprocess.Popen(["sh", "-c", f"sleep 8; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        for _ in range(3):
            step(np.ones((1, 2)))
        """,
        "--elastic",
        "2:",
    )
    assert ended.status == 0, ended.output
    assert "is lost: nothing has been heard of it for" in ended.output
    assert "process 1 exited with status 1" in ended.output
    assert "lost 1 of 3 processes; starting again with 2" in ended.output
    assert ended.told[0] == ["0 3 0", "3.0", "1 2 0", "2.0"]
    assert ended.told[1] == ["0 3 1", "3.0", "1 2 2", "2.0"]


def test_an_exception_is_no_loss(launch):  # noqa: F811
    """All have the same program, so it would fail with fewer, too."""
    ended = launch(2, 'raise ValueError("a mistake")', "--elastic", "1:")
    assert ended.status == 1
    assert "starting again" not in ended.output


@pytest.fixture
def machines(tmp_path):
    """Starts launchers of machines, each with a process; kills what is on a machine."""
    started = []
    meeting_port = free_port()
    meeting = ["--nnodes", "3", "--coordinator", f"127.0.0.1:{meeting_port}"]

    class Machines:
        place, port = tmp_path, meeting_port

        def start(self, rank, *options, token="a secret"):
            environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
            environment |= {
                "PYTHONPATH": str(ROOT),
                "PHALANX_NUM_CPU_DEVICES": "2",
                "PHALANX_TOKEN": token,
                "JAX_PLATFORMS": "cpu",
            }
            given = [*meeting, "--node-rank", str(rank), *options, str(tmp_path / "story.py")]
            with open(tmp_path / f"output-{rank}", "a") as output:
                child = subprocess.Popen(
                    [sys.executable, "-m", "phalanx", "launch", *given],
                    env=environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            started.append(child)
            return child

        def output(self, rank):
            return (tmp_path / f"output-{rank}").read_text()

        def wait_for(self, name):
            """Until processes have written a file of that name."""
            until = time.monotonic() + PATIENCE
            while not (tmp_path / name).exists():
                assert time.monotonic() < until, [self.output(rank) for rank in range(3)]
                time.sleep(0.02)
            return (tmp_path / name).read_text()

        def wait_until_connected(self, rank, times):
            until = time.monotonic() + PATIENCE
            while self.output(rank).count("connected to the first machine") < times:
                assert time.monotonic() < until, self.output(rank)
                time.sleep(0.02)
            time.sleep(0.5)  # in which that one hears of it

    yield Machines()
    for child in started:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)  # it ends its own
            child.wait(30)


# Each process has rows of a sharded array, and tells when a step is kept that it waits after.
MACHINES = """
import os, signal, time
import numpy as np
import phalanx
from phalanx import lax
from phalanx.experimental import checkpoint, elastic
place = os.path.dirname(__file__)
def write(name, text=""):
    with open(f"{place}/{name}-", "w") as file:
        file.write(text)
    os.rename(f"{place}/{name}-", f"{place}/{name}")
phalanx.distributed.initialize()
me, count = phalanx.process_index(), phalanx.process_count()
attempt = int(os.environ["PHALANX_RESTART"])
mesh = phalanx.make_mesh((phalanx.device_count(),), ("i",))
cut = phalanx.NamedSharding(mesh, phalanx.P("i"))
rows = phalanx.device_put(np.zeros((12, 2), np.float32), cut)
add = phalanx.jit(lambda x: x + phalanx.numpy.arange(24.0).reshape(12, 2))
state = elastic.resume({"rows": rows, "step": 0, "key": phalanx.random.key(3)}, f"{place}/run")
print("attempt", attempt, "begins with step", state["step"], "in", count, flush=True)
while state["step"] < 9:
    rows = add(state["rows"])
    state |= {"rows": rows, "step": state["step"] + 1}
    if state["step"] == 2:
        checkpoint.save(f"{place}/run", 2, state)
    elastic.snapshot(state)
    elastic.snapshot(state)  # when this begins, all have sent the one before
    if state["step"] == 3 * attempt + 3 and attempt < 2:
        write(f"pid-{attempt}-{me}", str(os.getpid()))
        while True:
            phalanx.experimental.multihost_utils.sync_global_devices("until one is lost")
            time.sleep(0.02)
expected = 9 * np.arange(24.0).reshape(12, 2)
for part in state["rows"].addressable_shards:
    assert np.array_equal(part.data, expected[part.index]), part
assert state["key"] == phalanx.random.key(3)
print("ended", flush=True)
"""


def test_a_machine_is_lost_and_comes_back(machines):
    """Of three, the second is lost in the first attempt; it returns, and takes part in the third,
    in which the process of the last one is missing."""
    (machines.place / "story.py").write_text(MACHINES)
    launchers = [machines.start(rank, "--elastic", "2:") for rank in range(3)]
    pids = [int(machines.wait_for(f"pid-0-{me}")) for me in range(3)]
    launchers[1].kill()
    os.kill(pids[1], signal.SIGKILL)
    pids = [int(machines.wait_for(f"pid-1-{me}")) for me in range(2)]
    back = machines.start(1, "--elastic", "2:")
    machines.wait_until_connected(1, 2)  # the second time
    os.kill(pids[1], signal.SIGKILL)
    statuses = [child.wait(PATIENCE) for child in (launchers[0], back, launchers[2])]
    outputs = [machines.output(rank) for rank in range(3)]
    assert statuses == [0, 0, 0], "\n".join(outputs)
    assert "machine 1 is lost: the connection to its launcher is closed" in outputs[0]
    assert "lost 1 of 3 processes; starting again with 2" in outputs[0]
    assert "lost 1 of 2 processes; starting again with 2" in outputs[0]
    assert "[0] attempt 1 begins with step 3 in 2" in outputs[0]
    assert "[0] attempt 2 begins with step 6 in 2" in outputs[0]
    assert "[0] ended" in outputs[0] and "[1] ended" in outputs[1]
    assert "[2] ended" not in outputs[2]


def test_a_machine_and_its_neighbour_are_lost(machines):
    """Nobody is left who keeps the part of the second, so the run goes on from the checkpoint."""
    (machines.place / "story.py").write_text(MACHINES.replace("attempt < 2", "attempt < 1"))
    launchers = [machines.start(rank, "--elastic", "1:") for rank in range(3)]
    pids = [int(machines.wait_for(f"pid-0-{me}")) for me in range(3)]
    for rank in (1, 2):
        launchers[rank].kill()
        os.kill(pids[rank], signal.SIGKILL)
    status, output = launchers[0].wait(PATIENCE), machines.output(0)
    assert status == 0, output
    # the last process may not have sent its part of the newest to the first machine yet
    told = r"no snapshot is left as a whole: part(s 1, 2| 1) of 3, from 0, of the newest went with"
    assert re.search(told, output), output
    assert re.search(r"the run goes on from step 2 in \S+/run\n", output)
    assert "[0] attempt 1 begins with step 2 in 1" in output
    assert "[0] ended" in output


def test_a_machine_is_lost_before_the_processes_have_met(machines):
    """Nobody waits for its process until the time-out, which is five minutes."""
    (machines.place / "story.py").write_text(
        """
import os, time
import phalanx
me, attempt = os.environ["PHALANX_PROCESS_ID"], os.environ["PHALANX_RESTART"]
if me == "1" and attempt == "0":
    with open(os.path.join(os.path.dirname(__file__), "pid"), "w") as file:
        print(os.getpid(), file=file, flush=True)
        time.sleep(100)
if me == "2" and attempt == "0":
    time.sleep(3)  # so that it comes when process 0 has ended
phalanx.distributed.initialize()
print("attempt", attempt, "of", phalanx.process_count(), flush=True)
"""
    )
    launchers = [machines.start(rank, "--elastic", "2:") for rank in range(3)]
    while not (pid := machines.wait_for("pid").strip()):
        pass
    launchers[1].kill()
    os.kill(int(pid), signal.SIGKILL)
    statuses = [launchers[rank].wait(PATIENCE) for rank in (0, 2)]
    output = machines.output(0)
    assert statuses == [0, 0], output
    assert "process 1 was lost with its machine before it came" in output
    assert "lost 1 of 3 processes; starting again with 2" in output
    assert "[0] attempt 1 of 2" in output


def test_launchers_that_do_not_belong_together(machines):
    (machines.place / "story.py").write_text("print('ran')")
    first, second = (machines.start(rank, "--elastic", "1:") for rank in (0, 1))
    machines.wait_until_connected(1, 1)
    for rank, token, why in [
        (2, "another", "it belongs to another launch: PHALANX_TOKEN differs"),
        (1, "a secret", "two launchers have --node-rank 1"),
    ]:
        assert machines.start(rank, "--elastic", "1:", token=token).wait(PATIENCE) == 1
        assert f"the first machine refuses this one: {why}" in machines.output(rank)
    strangers = [b"GET / HTTP/1.1", b"{}", b'{"token": "\\ud800", "rank": 2, "slots": []}']
    strangers += [b'{"token": "\\ud800", "rank": 2, "slots": [], "snapshot_server": ""}']
    for said in strangers:
        with socket.create_connection(("127.0.0.1", machines.port), timeout=10) as stranger:
            stranger.sendall(said + b"\n")
            stranger.recv(1 << 10)
    third = machines.start(2, "--elastic", "1:")
    assert [child.wait(PATIENCE) for child in (first, second, third)] == [0, 0, 0]
    assert "[2] ran" in machines.output(2)
    turned_away = "phalanx launch: somebody at 127.0.0.1 was turned away: "
    assert f"{turned_away}it belongs to another launch" in machines.output(0)
    assert f"{turned_away}it says nothing that is understood" in machines.output(0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_has_not_ended_well_on_any_machine(machines, number):
    (machines.place / "story.py").write_text(
        "import phalanx\n"
        "phalanx.distributed.initialize()\n"
        "print('runs')\n"
        "phalanx.distributed.key_value_get('never set')\n"
    )
    first, *others = [machines.start(rank, "--elastic", "1:") for rank in range(3)]
    until = time.monotonic() + PATIENCE
    while not all("runs" in machines.output(rank) for rank in range(3)):
        assert time.monotonic() < until, machines.output(0)
        time.sleep(0.02)
    first.send_signal(number)
    assert first.wait(PATIENCE) == 128 + number
    assert [child.wait(PATIENCE) for child in others] == [1, 1]
