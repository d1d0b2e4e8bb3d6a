"""Programs of several processes on this machine, each of which is started and ends by itself.

A story is a script for all of its processes; what they print is what it tells.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 120  # seconds after which all that a story has started is ended

BEGIN = """
import os, signal, time
import numpy as np
import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.sharding import Mesh, NamedSharding, PartitionSpec as P
silence = int(os.environ.get("SILENCE", 100))
phalanx.distributed.initialize(heartbeat_timeout_seconds=silence)
me, count = phalanx.process_index(), phalanx.process_count()
def tell(*words):  # in a file: Gloo writes to the standard output, too, and in the midst of lines
    with open(f"{os.path.dirname(__file__)}/told-{me}", "a") as file:
        print(*words, file=file)
"""


@dataclass
class Ended:
    """What a launch has told: its status, its output, and per process the lines that it told."""

    status: int
    output: str
    told: dict[int, list[str]]


@pytest.fixture
def launch(tmp_path):
    started = []
    temporary = tempfile.mkdtemp()  # of a path that is short enough for sockets

    def run(count, story, *options, devices=1):
        script = tmp_path / "story.py"
        script.write_text(BEGIN + textwrap.dedent(story))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "PHALANX_NUM_CPU_DEVICES": str(devices),
            "JAX_PLATFORMS": "cpu",
            "TMPDIR": temporary,
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "phalanx", "launch", "-n", str(count), *options, str(script)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(child)
        output, _ = child.communicate(timeout=PATIENCE)
        files = {int(path.name[5:]): path for path in tmp_path.glob("told-*")}
        told = {process: path.read_text().splitlines() for process, path in files.items()}
        assert not os.listdir(temporary)
        return Ended(child.returncode, output, told)

    yield run
    shutil.rmtree(temporary)
    for child in started:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)  # it ends its own
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)


def test_processes_divide_rows_and_train_on_the_last_batch(launch):
    """Twenty rows in batches of eight, of which the last has four, among three processes."""
    ended = launch(
        3,
        """
        x = np.sin(np.arange(60.0, dtype="float32").reshape(20, 3))
        y = x @ np.float32([1, -2, 3])
        def step(w, x, y, rows):
            slope = phalanx.grad(lambda w: (x @ w - y) ** 2)(w)
            return w - 0.1 * lax.pmean(slope, "i")
        step = phalanx.pmap(step, "i", in_axes=(None, 0, 0), out_axes=None,
                            static_broadcasted_argnums=3)
        w = jnp.zeros(3)
        for start in range(0, 20, 8):
            rows = slice(start, start + 8)
            mine = phalanx.process_rows(len(x[rows]))
            w = step(w, x[rows][mine], y[rows][mine], len(x[rows]))
        tell([phalanx.process_rows(8, i) for i in range(count)])
        tell(np.asarray(w).tolist())
        """,
    )
    assert ended.status == 0, ended.output
    x = np.sin(np.arange(60.0).reshape(20, 3))
    w, y = np.zeros(3), x @ np.array([1.0, -2.0, 3.0])
    for start in range(0, 20, 8):
        rows = slice(start, start + 8)
        w -= 0.1 * 2 * np.mean((x[rows] @ w - y[rows])[:, None] * x[rows], axis=0)
    for me in range(3):
        divided, trained = ended.told[me]
        assert divided == str([slice(0, 3), slice(3, 6), slice(6, 8)])
        np.testing.assert_allclose(json.loads(trained), w, rtol=1e-5)


def test_arrays_lie_over_processes(launch):
    ended = launch(
        2,
        """
        mesh = Mesh(np.array(phalanx.devices()), ("d",))
        rows = NamedSharding(mesh, P("d"))
        here = len(phalanx.local_devices())
        x = phalanx.make_array_from_process_local_data(rows, np.arange(here) + 10.0 * me)
        tell(len(phalanx.devices()), here, x.shape, x.is_fully_addressable)
        tell([s.data.tolist() for s in x.addressable_shards])
        tell(phalanx.jit(jnp.sum)(x))
        add = phalanx.shard_map(lambda x: x + lax.psum(x, "d"), mesh=mesh, in_specs=P("d"),
                                out_specs=P("d"))
        tell([s.data.tolist() for s in phalanx.jit(add)(x).addressable_shards])
        try:
            np.asarray(x)
        except ValueError as e:
            tell(e)
        phalanx.distributed.key_value_set(f"from {me}", f"told by {me}")
        tell(phalanx.distributed.key_value_get(f"from {1 - me}"))
        for wrong in (b"bytes", 3):
            try:
                phalanx.distributed.key_value_set("k", wrong)
            except TypeError as e:
                tell(e)
        tell(x, [x])
        other = next(d for d in phalanx.devices() if d.process_index != me)
        away = phalanx.device_put(np.arange(3.0), other)
        tell(away.shape, away.addressable_shards)
        try:
            away + 1
        except phalanx.errors.DeviceError as e:
            tell(e)
        """,
        devices=2,
    )
    assert ended.status == 0, ended.output
    for me in (0, 1):
        (
            first, shards, total, added, refused, key, bytes, number, shown, away, nobody
        ) = ended.told[me]  # fmt: skip
        assert first == "4 2 (4,) False"
        assert shards == str([[10.0 * me], [10.0 * me + 1]])
        assert total == "22.0"
        assert added == str([[10.0 * me + 22], [10.0 * me + 23]])
        assert "devices of other processes" in refused
        assert key == f"told by {1 - me}"
        assert "value must be text, got bytes b'bytes'" in bytes
        assert "bytes.hex()" in bytes
        assert "value must be text, got int 3" in number
        assert shown == "Array(shape=(4,), dtype=float32) [Array(shape=(4,), dtype=float32)]"
        assert away == "(3,) []"
        assert f"no device of this process, {me}, is among" in nobody


LOST = """
mesh = Mesh(np.array(phalanx.devices()), ("d",))
x = phalanx.device_put(np.arange(3.0), NamedSharding(mesh, P("d")))
step = phalanx.jit(lambda x: x * 0.5 + jnp.sum(x))
step(x)
if me == 1:
    HOW
try:
    while True:
        x = step(x)
except phalanx.errors.PhalanxError as e:
    tell(type(e).__name__, getattr(e, "process", None), str(e).replace("\\n", " "))
    tell(jnp.arange(3) + 1)
    try:
        step(x)
    except phalanx.errors.PhalanxError as e:
        tell(type(e).__name__)
"""


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "it was killed by SIGKILL"),
        ("raise KeyError('mine')", "KeyError: 'mine'"),
    ],
)
def test_who_is_lost_is_named_by_all_others(launch, how, words):
    ended = launch(3, LOST.replace("HOW", how))
    assert ended.status == (137 if "SIGKILL" in how else 1), ended.output
    for me in (0, 2):
        lost, local, again = ended.told[me]
        assert lost.startswith("PeerLost 1 <lambda> (launch"), ended.output
        assert words in lost
        assert local == "[1 2 3]"
        assert again == "PeerLost"


def test_nobody_waits_for_one_that_is_killed_while_they_connect(launch):
    ended = launch(
        2,
        """
        from phalanx.processes.group import Group
        compare = Group.compare
        def last_words(group, topic, *rest, **more):
            found = compare(group, topic, *rest, **more)
            if me == 1 and topic.startswith("the first launch"):
                time.sleep(0.3)  # the other is where it waits for this one
                os.kill(os.getpid(), signal.SIGKILL)
            return found
        Group.compare = last_words
        here = np.ones((len(phalanx.local_devices()), 3), np.float32)
        try:
            phalanx.pmap(lambda x: lax.psum(x, "i"), "i")(here)
        except phalanx.errors.PeerLost as e:
            tell(e.process, e)
        among = phalanx.local_devices()  # which must not wait for others either
        tell(phalanx.pmap(lambda x: lax.psum(x, "i"), "i", devices=among)(here)[0].tolist())
        """,
        devices=2,
    )
    assert ended.status == 137, ended.output
    lost, local = ended.told[0]  # within the 10 s that the launcher gives
    assert lost.startswith("1 pmap_<lambda> of 2, 2 rows (launch 1 over processes 0,1): process 1")
    assert local == "[2.0, 2.0, 2.0]"


def test_who_is_stopped_is_late_and_then_lost(launch, monkeypatch):
    monkeypatch.setenv("SILENCE", "3")
    ended = launch(
        2,
        """
        import warnings
        warnings.showwarning = lambda message, kind, *rest: tell(kind.__name__, message)
        phalanx.distributed.key_value_set(f"pid {me}", str(os.getpid()))
        other = int(phalanx.distributed.key_value_get("pid 1"))
        step = phalanx.pmap(lambda x: lax.pmean(x, "i"), "i")
        x = step(step(np.ones((1, 3), np.float32)))
        if me == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            while True:
                x = step(x)
        except phalanx.errors.PeerLost as e:
            tell(e.process, e)
        os.kill(other, signal.SIGKILL)
        """,
    )
    assert ended.status == 137, ended.output
    *late, lost = ended.told[0]
    assert late
    assert all(line.startswith("PeerSlow process 1 on ") for line in late)
    assert lost.startswith("1 pmap_<lambda> of 1, 1 rows (launch ")
    assert "nothing has been heard of it for 3 s" in lost


def test_programs_that_differ_are_refused_everywhere(launch):
    ended = launch(
        2,
        """
        mesh = Mesh(np.array(phalanx.devices()), ("d",))
        x = phalanx.device_put(np.arange(2.0), NamedSharding(mesh, P("d")))
        def f(x):
            return jnp.sin(x) + jnp.sum(x) if me else jnp.cos(x) + jnp.sum(x)
        mine = np.float32([1, 2 + me])
        there = Mesh(np.array(phalanx.devices()[:: 1 - 2 * me]), ("d",))
        turned = phalanx.device_put(np.arange(2.0), NamedSharding(there, P("d")))
        fast = {"xla_cpu_enable_fast_math": bool(me)}
        for differs in (
            lambda: phalanx.jit(f)(x),
            lambda: phalanx.jit(lambda x: (x * mine).sum())(x),
            lambda: phalanx.jit(lambda x: x + x.sum())(turned),
            lambda: phalanx.jit(lambda x: x - x.sum(), compiler_options=fast)(x),
        ):
            try:
                differs()
            except phalanx.errors.ProgramMismatch as e:
                tell(e)
        """,
    )
    assert ended.status == 0, ended.output
    for me in (0, 1):
        why, constants, devices, options = ended.told[me]
        assert "process 0 has:" in why
        assert "= cos" in why
        assert "= sin" in why
        assert "story.py" in why
        assert "process 1 has: captured constant 0, f32[2] of [1.0, 3.0]" in constants
        assert "process 1 has: the devices 2048, 0" in devices
        assert "('xla_cpu_enable_fast_math', True)" in options


def test_launches_in_another_order_are_told_of_where_all_meet(launch):
    ended = launch(
        2,
        """
        times = lambda n: phalanx.pmap(lambda x: n * lax.psum(x, "i"), "i")
        both = [times(2), times(3)]
        x = np.ones((1, 3), np.float32)
        for f in both:
            f(x)
        for f in both[:: 1 - 2 * me]:
            f(x)
        try:
            phalanx.experimental.multihost_utils.sync_global_devices("all is done")
        except phalanx.errors.ProgramMismatch as e:
            tell(e)
        """,
    )
    assert ended.status == 0, ended.output
    assert len(ended.told[0]) == len(ended.told[1]) == 1
    assert "launch 3 over processes 0,1" in ended.told[0][0]


def test_who_launches_what_another_does_not_learns_so(launch):
    ended = launch(
        3,
        """
        f = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
        x = np.asarray(f(np.ones((1, 3), np.float32)))
        try:
            if me == 2:
                f(np.ones((2, 3), np.float32))  # where all the others go on as before
            np.asarray(f(x))
        except phalanx.errors.ProgramMismatch as e:
            tell(e, *getattr(e, "__notes__", ()))
        """,
    )
    assert ended.status == 0, ended.output
    for me in range(3):
        (why,) = ended.told[me]
        assert "process 2 is at: calling pmap(<lambda>) with 2 rows" in why
        assert "at: launch 2 over processes 0,1,2, pmap_<lambda> of 1, 1, 1 rows" in why
        assert ("as a static argument" in why) == (me == 2)


@pytest.mark.parametrize("reads", [True, False])
def test_rows_that_change_without_a_word_are_told_of_each(launch, reads):
    """Those of processes 1 and 2 do; process 0 keeps its number, and may end with its launch."""
    ended = launch(
        3,
        f"""
        f = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
        first, then = (1, 2, 1)[me], (1, 1, 2)[me]
        np.asarray(f(np.ones((first, 3), np.float32)))
        try:
            found = f(np.ones((then, 3), np.float32))
            if {reads} or me > 0:
                np.asarray(found)
            else:
                phalanx.distributed.shutdown()
        except phalanx.errors.ProgramMismatch as e:
            tell(e)
        """,
    )
    assert ended.status == 0, ended.output
    for me in range(3):
        (why,) = ended.told[me]
        launched = "launch 2 over processes 0,1,2, pmap_<lambda> of 1, 2, 1 rows"
        assert f"process 0 is at: {launched}" in why
        assert "process 1 is at: calling pmap(<lambda>) with 1 row;" in why
        assert "process 2 is at: calling pmap(<lambda>) with 2 rows" in why


def test_who_ends_does_its_part_of_what_it_launched_and_no_more(launch):
    ended = launch(
        2,
        """
        f = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
        x = f(np.ones((2, 3), np.float32))
        x.block_until_ready()
        if me == 1:
            f(x)  # which nobody reads here
        else:
            time.sleep(0.5)
            tell(f(x)[0].tolist())
            try:
                tell(np.asarray(f(x)))
            except phalanx.errors.PeerLost as e:
                tell(e.process, e.why)
        """,
        devices=2,
    )
    assert ended.status == 0, ended.output
    found, why = ended.told[0]
    assert found == "[16.0, 16.0, 16.0]"
    assert why.startswith("1 it left after 2 launches, before launch 3 (pmap_<lambda>")


def test_who_exits_with_a_status_has_not_left_in_peace(launch):
    ended = launch(
        2,
        """
        f = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
        x = f(np.ones((1, 3), np.float32))
        if me == 1:
            raise SystemExit(3)
        try:
            f(x).block_until_ready()
        except phalanx.errors.PeerLost as e:
            tell(e.process, e.why)
        """,
    )
    assert ended.status == 3, ended.output
    (why,) = ended.told[0]
    assert why.startswith(
        "1 it exited with status 3 after 1 launch, before launch 2 (pmap_<lambda>"
    )


def test_nobody_waits_for_a_launcher_that_is_killed_before_they_meet(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        """
import os, signal
import phalanx
os.kill(os.getppid(), signal.SIGKILL)
try:
    phalanx.distributed.initialize(initialization_timeout=60)
except phalanx.errors.RendezvousError as e:
    with open(os.path.join(os.path.dirname(__file__), "told"), "w") as file:
        file.write(str(e))
        """
    )
    command = [sys.executable, "-m", "phalanx", "launch", "-n", "1", str(script)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=PATIENCE)
    assert done.returncode == -signal.SIGKILL
    told, until = tmp_path / "told", time.monotonic() + PATIENCE
    while not (told.exists() and told.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    assert "the launcher that started this process has ended" in told.read_text()


def test_a_launch_begins_again(launch):
    ended = launch(
        2,
        """
        first = os.environ["PHALANX_RESTART"] == "0"
        if first and me == 0:
            os._exit(3)
        tell("restart", os.environ["PHALANX_RESTART"])
        """,
        "--max-restarts",
        "2",
    )
    assert ended.status == 0, ended.output
    assert "process 0 exited with status 3" in ended.output
    assert "starting all processes again (1 of 2 times left)" in ended.output
    assert ended.told[0] == ["restart 1"]
    assert ended.told[1][-1] == "restart 1"


PMAP_LAW = """
rows = [int(n) for n in ROWS.split()]
total, first = sum(rows), sum(rows[:me])
mine = slice(first, first + rows[me])
rng = np.random.default_rng(0)
x, w = (rng.normal(size=(n, 3)).astype(np.float32) for n in (total, 3))
key = phalanx.random.key(0)

def f(x, w):
    i = lax.axis_index("i")
    gradient = phalanx.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w)
    return {
        "index": i,
        "random": phalanx.random.normal(phalanx.random.fold_in(key, i), (2,)),
        "size": lax.psum(1, "i"),
        "psum": lax.psum(x, "i"),
        "pmean of gradients": lax.pmean(gradient, "i"),
        "pmax": lax.pmax(x, "i"),
        "all_gather": lax.all_gather(x, "i"),
        "ppermute": lax.ppermute(x, "i", [(k, (k + 1) % total) for k in range(total)]),
        "all_to_all": lax.all_to_all(jnp.arange(total) + x[0], "i", 0, 0),
        "cond": lax.cond(x[0] > 0, lambda: lax.psum(x[0], "i"), lambda: x[1]),
    }

found = phalanx.pmap(f, axis_name="i", in_axes=(0, None))(x[mine], w)
wanted = phalanx.vmap(f, axis_name="i", in_axes=(0, None))(x, w)
for name in wanted:
    here = np.asarray(wanted[name])[mine]
    same = found[name].shape == here.shape and np.allclose(found[name], here, atol=1e-5)
    tell(name, same, found[name].is_fully_addressable)
step = phalanx.pmap(lambda x: x + lax.psum(x, "i"), axis_name="i")
once = x + x.sum(0)
tell("twice", np.allclose(step(step(x[mine])), (once + once.sum(0))[mine], atol=1e-4), True)
total, turned = phalanx.pmap(
    lambda x: (lax.psum(x, "i"), x * 2), axis_name="i", out_axes=(None, 1)
)(x[mine])
tell("out_axes", np.allclose(total, x.sum(0), atol=1e-5) and np.allclose(turned, x[mine].T * 2),
     True)
"""


@pytest.mark.parametrize(("rows", "devices"), [("4 4", 2), ("3 5 1", 2)])
def test_pmap_over_processes_is_vmap_over_all_lanes(launch, rows, devices):
    ended = launch(len(rows.split()), PMAP_LAW.replace("ROWS", repr(rows)), devices=devices)
    assert ended.status == 0, ended.output
    for me in range(len(rows.split())):
        assert len(ended.told[me]) == 12
        assert all(line.endswith("True True") for line in ended.told[me]), ended.told[me]


LANES = """
rows = [int(n) for n in ROWS.split()]
first = sum(rows[:me])
mine = slice(first, first + rows[me])
x = np.random.default_rng(0).uniform(-1, 1, (sum(rows), 3)).astype(np.float32)
w = np.float32([0.5, -1, 2])
both = np.stack([x, 0.5 * x])

def inside(map):  # a function that communicates, and a loss with one that does not
    within = phalanx.vmap if map is phalanx.vmap else phalanx.pmap
    def lane(x, w):
        y = jnp.tanh(x @ w)
        z = lax.cond(x[0] > 0, lambda: lax.psum(y, "i"), lambda: y) + lax.axis_index("i")
        inner = within(lambda a: a * lax.psum(a, ("i", "j")), axis_name="j")(x)
        return x * z + inner, lax.pmean(y**2, "i")

    f = map(lane, axis_name="i", in_axes=(0, None), out_axes=(0, None))
    alone = map(lambda x, w: jnp.sin(x) @ w, axis_name="i", in_axes=(0, None))
    return f, lambda x, w: f(x * 2, w)[0].sum() + alone(x, w).sum()

def closed_over(map):
    return lambda x, w: map(lambda x: w * lax.pmean(x @ w, "i"), axis_name="i")(x)

def several(map):
    f, loss = inside(map)
    return {
        "jvp": (0, lambda x, w: phalanx.jvp(lambda x: f(x, w)[0], (x,), (x,))[1]),
        "linearize": (0, lambda x, w: phalanx.linearize(lambda x: f(x, w)[0], x)[1](x)),
        "slope by rows": (0, phalanx.grad(loss)),
        "slope by what is not mapped": (None, phalanx.grad(loss, 1)),
        "slope of a result that is not mapped": (None, phalanx.grad(lambda x, w: f(x, w)[1], 1)),
        "slope by a closure": (None, phalanx.grad(lambda x, w: closed_over(map)(x, w).sum(), 1)),
        "bend": (None, lambda x, w: phalanx.jacfwd(phalanx.grad(lambda w: f(x, w)[1]))(w)),
    }

def compiled(map):
    f, loss = inside(map)
    def train(x, w):
        def step(w, _):
            loss, slope = phalanx.value_and_grad(lambda w: f(x, w)[1])(w)
            return w - 0.1 * slope, loss
        return lax.scan(step, w, None, length=3)
    def times(x, w):
        body = lambda c: (c[0] + 1, c[1] + f(x, c[1])[1])
        return lax.while_loop(lambda c: c[0] < 2, body, (0, w))[1]
    return {
        "jit": (0, phalanx.jit(lambda x, w: f(x * 2, w)[0] + 1)),
        "slope": (None, phalanx.jit(phalanx.grad(loss, 1))),
        "checkpoint": (0, phalanx.grad(phalanx.checkpoint(lambda x, w: f(x, w)[0].sum()))),
        "scan": (None, phalanx.jit(lambda x, w: train(x, w)[0])),
        "while": (None, times),
        "branch": (0, lambda x, w: lax.cond(w[0] > 0, lambda: f(x, w)[0], lambda: x)),
    }
f, _ = inside(phalanx.pmap)
g, _ = inside(phalanx.vmap)

def same(name, found, wanted, dim):
    here = np.asarray(wanted)
    here = here if dim is None else here.take(range(mine.start, mine.stop), dim)
    close = found.shape == here.shape and np.allclose(found, here, rtol=1e-3, atol=1e-4)
    tell(name, close if close else (found, here))
"""

AROUND = """
wanted = several(phalanx.vmap)
for name, (dim, h) in several(phalanx.pmap).items():
    same(name, h(x[mine], w), wanted[name][1](x, w), dim)
over = lambda f: phalanx.vmap(lambda x: f(x, w)[0])
same("vmap", over(f)(both[:, mine]), over(g)(both), 1)
with phalanx.disable_jit():
    same("without compiling what is around it", f(x[mine], w)[0], g(x, w)[0], 0)
for name, (_, h) in compiled(phalanx.pmap).items():
    try:
        tell(h(x[mine], w))
    except phalanx.errors.DeviceError as e:
        wise = "story.py" in str(e) and "mesh=" in str(e) and "inside of it" in str(e)
        tell(name, wise if wise else e)
if me == 0:  # where nobody communicates, nobody else is needed
    same("alone", phalanx.pmap(lambda x: jnp.sin(x), axis_name="i")(x[mine]), np.sin(x), 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "devices"), [("3 5", 2), ("2 1 3", 1)])
def test_transformations_around_a_pmap_over_rows_of_processes(launch, rows, devices):
    """Those that run operation by operation; what is compiled, or is a loop, is refused."""
    story = LANES.replace("ROWS", repr(rows)) + AROUND
    ended = launch(len(rows.split()), story, devices=devices)
    assert ended.status == 0, ended.output
    for me in range(len(rows.split())):
        assert len(ended.told[me]) == 15 + (me == 0), ended.output
        assert all(line.endswith("True") for line in ended.told[me]), ended.told[me]


GLOBAL = """
import functools
mesh = Mesh(np.array(phalanx.devices()), ("i",))
even = len(x) % len(phalanx.devices()) == 0  # else the last blocks are shorter
place = (NamedSharding if even else phalanx.sharding.PmapSharding)(mesh, P("i"))
def spread(x, mine):
    return phalanx.make_array_from_process_local_data(place, x[mine], x.shape)
def here(y):  # the parts that this process has
    return [(s.index, np.asarray(s.data)) for s in y.addressable_shards]
def same(name, found, wanted):
    wanted = np.asarray(wanted)
    parts = [np.allclose(a, wanted[i], rtol=1e-3, atol=1e-4) for i, a in here(found)]
    right = found.shape == wanted.shape and all(parts)
    tell(name, right if right else (found, here(found), wanted))

own = spread(x, mine)
over_mesh = functools.partial(phalanx.pmap, mesh=mesh)
wanted = several(phalanx.vmap) | compiled(phalanx.vmap)
for name, (_, h) in (several(over_mesh) | compiled(over_mesh)).items():
    same(name, h(own, w), wanted[name][1](x, w))
for name, (_, h) in several(phalanx.pmap).items():  # whose devices are those of its argument
    if "vmap" not in name:
        same(name + ", no mesh", h(own, w), wanted[name][1](x, w))
same("call", f(own, w)[0], g(x, w)[0])
same("the same value everywhere", f(own, w)[1], g(x, w)[1])
with phalanx.disable_jit():
    same("one by one", inside(over_mesh)[0](own, w)[0], g(x, w)[0])
    same("one by one, no mesh", f(own, w)[0], g(x, w)[0])
made = phalanx.jit(lambda x, w: inside(over_mesh)[0](x, w)[0]).lower(own, w)
assert "manual" in made.as_text()
same("ahead of time", made.compile()(own, w), g(x, w)[0])
same("lowered", phalanx.pmap(lambda x: x + lax.psum(x, "i"), "i").lower(own).compile()(own),
     x + x.sum(0))
where = f.placement(own, w)
tell(len(where.devices) == len(phalanx.devices()) and where.size == len(x))
donated = phalanx.pmap(lambda x: x * 2, "i", donate_argnums=0)
again = spread(x, mine)
same("donated", donated(again), x * 2)
tell(again.is_deleted())
keys = phalanx.random.split(phalanx.random.key(0), len(x))
draw = lambda key: phalanx.random.normal(phalanx.random.fold_in(key, lax.axis_index("i")), (2,))
same("random", over_mesh(draw, axis_name="i")(keys), phalanx.vmap(draw, axis_name="i")(keys))
grid = Mesh(np.array(phalanx.devices()).reshape(count, -1), ("a", "b"))
pair = lambda r, c: r @ c + lax.axis_index("a") * 10 + lax.psum(r[0], "a")
both = phalanx.pmap(pair, mesh=grid, in_axes=(P("a"), P(None, "b")), out_axes=P("a", "b"))
cs = np.arange(9, dtype="float32").reshape(3, 3)
whole = phalanx.vmap(phalanx.vmap(pair, in_axes=(None, 1), out_axes=0, axis_name="b"),
                     in_axes=(0, None), axis_name="a")
same("two axes", both(x, cs), whole(x, cs))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "devices"), [("4 4", 2), ("4 3", 2), ("2 2 1", 1)])
def test_pmap_of_arrays_over_processes(launch, rows, devices):
    story = LANES.replace("ROWS", repr(rows)) + GLOBAL
    ended = launch(len(rows.split()), story, devices=devices)
    assert ended.status == 0, ended.output
    for me in range(len(rows.split())):
        assert all(line.endswith("True") for line in ended.told[me]), ended.told[me]
        assert len(ended.told[me]) == 31, ended.told[me]


def test_arrays_over_processes_move_to_other_orders_of_devices_and_copies_to_one_process(launch):
    ended = launch(
        2,
        """
        x = np.sin(np.arange(16, dtype="float32")).reshape(4, 4)
        devices = np.array(phalanx.devices())
        orders = [devices, devices[::-1], devices[[0, 2, 1, 3]], devices[[2, 0, 3, 1]]]
        meshes = [Mesh(order, ("i",)) for order in orders]
        def told(found, wanted):
            tell(np.allclose(found, wanted, rtol=1e-5))
        def check(y, whole):
            parts = [(s.data, whole[s.index]) for s in y.addressable_shards]
            tell(all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5) for a, b in parts))
        for source in meshes:
            for target in meshes[1:]:
                for before in (P("i"), P(None, "i"), P()):
                    y = phalanx.device_put(x, NamedSharding(source, before))
                    for after in (P("i"), P()):
                        check(phalanx.device_put(y, NamedSharding(target, after)), x)
        aside = [NamedSharding(m, P("i"), memory_kind="pinned_host") for m in meshes[:2]]
        for to in aside:
            for y in (x, phalanx.device_put(x, NamedSharding(meshes[0], P(None, "i")))):
                y = phalanx.device_put(phalanx.device_put(y, aside[0]), to)
                check(y, x)
                check(phalanx.device_put(y, NamedSharding(meshes[0], P())), x)
                check(phalanx.pmap(lambda v: v + lax.psum(v, "i"), "i")(y), x + x.sum(0))
        short = phalanx.sharding.PmapSharding(meshes[0], P("i"))
        few = phalanx.make_array_from_callback((3, 4), short, lambda at: x[:3][at])
        try:
            phalanx.make_array_from_process_local_data(short, x[:1])
        except ValueError as e:
            tell("would by the data be 2" in str(e) and "; give global_shape" in str(e))
        for mesh in meshes:
            add = phalanx.pmap(lambda v: v + lax.psum(v, "i"), "i", mesh=mesh)
            check(add(few), x[:3] + x[:3].sum(0))
        w = phalanx.device_put(x[0], NamedSharding(meshes[0], P()))
        for device in phalanx.local_devices():
            told(phalanx.device_put(w, device), x[0])
        mine = x[2 * me : 2 * me + 2]  # rows of this process, beside a whole array of all
        add = phalanx.pmap(lambda v: v * w + lax.psum(v, "i"), "i")
        told(add(mine), mine * x[0] + x.sum(0))
        slope = phalanx.grad(lambda w: phalanx.pmap(lambda v: v @ w)(mine).sum())(w)
        told(slope, x.sum(0))
        one = NamedSharding(Mesh(devices[::2], ("i",)), P("i"))
        other = NamedSharding(Mesh(devices[1::2], ("i",)), P("i"))
        for y, to in [(few, phalanx.local_devices()[0]), (phalanx.device_put(x, one), other)]:
            try:
                phalanx.device_put(y, to)
            except ValueError as e:
                tell("process_allgather" in str(e))
        """,
        devices=2,
    )
    assert ended.status == 0, ended.output
    for me in (0, 1):
        assert ended.told[me] == ["True"] * (4 * 3 * 6 + 2 * 2 * 3 + 1 + 4 + 2 + 2 + 2), (
            ended.output
        )


def test_nan_are_found_by_all_processes_in_what_spans_them(launch):
    """Only one process has a NaN; none runs anything that others do not."""
    ended = launch(
        2,
        """
        mesh = Mesh(np.array(phalanx.devices()), ("i",))
        def over(values):
            return phalanx.device_put(np.float32(values), NamedSharding(mesh, P("i")))
        x, far = over([1, 2, 3, 0]), over([1, 2, 3, np.inf])
        def log(x):
            return jnp.log(x - 1)  # of zero and of -1
        lanes = phalanx.pmap(log)
        cut = phalanx.shard_map(log, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        def attempt(found, f, x):
            try:
                tell(f(x).shape)
            except phalanx.errors.NonFiniteError as e:
                tell(found in str(e), "story.py" in str(e))
        with phalanx.debug_nans(True):
            jitted = phalanx.jit(phalanx.pmap(log, mesh=mesh)), phalanx.jit(log)
            for f in (lanes, *jitted, log, cut):
                attempt("log: NaN in a result f32[4", f, x)
                attempt("", f, over([2, 2, 3, 3]))
        with phalanx.debug_infs(True):
            attempt("exp: an infinity in a result f32[4", phalanx.pmap(jnp.exp), far)
            attempt("an infinity in a result c64[4", lambda x: x * (1 + 1j), far)
            attempt("", phalanx.pmap(jnp.exp), x)
        tell(phalanx.jit(jnp.sum)(x))
        """,
        devices=2,
    )
    assert ended.status == 0, ended.output
    nans, infs = ["True True", "(4,)"] * 5, ["True True", "True True", "(4,)"]
    for me in (0, 1):
        assert ended.told[me] == [*nans, *infs, "6.0"], ended.output


def test_a_pmap_is_told_whether_rows_are_all_that_there_are(launch):
    """Where only what is not mapped is over processes, nothing tells."""
    ended = launch(
        2,
        """
        mesh = Mesh(np.array(phalanx.devices()), ("i",))
        w = phalanx.device_put(np.float32([1, 2]), NamedSharding(mesh, P()))
        x = np.arange(4, dtype="float32").reshape(2, 2)
        scale = lambda x, w: x * w
        rows = phalanx.pmap(scale, in_axes=(0, None))
        for call in (lambda: rows(x, w), lambda: phalanx.grad(lambda w: rows(x, w).sum())(w),
                     lambda: rows.lower(x, w)):
            try:
                call()
            except phalanx.errors.DeviceError as e:
                tell("w, which is not mapped, is an array over processes" in str(e)
                     and all(word in str(e) for word in ["mesh=", "process_allgather", "story.py"]))
        y = phalanx.pmap(scale, in_axes=(0, None), mesh=mesh)(x, w)
        total = phalanx.pmap(lambda x: lax.psum(x, "i"), "i")
        try:
            phalanx.linear_transpose(total, y)(y)
        except phalanx.errors.DeviceError as e:
            tell("takes or captures f32[2,2], an array over processes" in str(e)
                 and all(word in str(e) for word in ["mesh=", "process_allgather", "story.py"]))
        captured = phalanx.pmap(lambda x: lax.psum(x * y, "i"), "i")
        tell(np.allclose(captured(x), 2 * (x[:, None] * (x * [1, 2])).sum(0)))
        try:
            phalanx.export.export(total)(x)
        except ValueError as e:
            tell("at story.py" in str(e) and "mesh=" in str(e) and "None" not in str(e))
        tell(np.asarray(y.addressable_data(0)).tolist())
        tell(phalanx.pmap(lambda w: w * 2, in_axes=None, axis_size=2, out_axes=None)(w).tolist())
        try:
            phalanx.pmap(lambda x, y: x + y)(x[:1], y)
        except phalanx.errors.AxisSizeError as e:
            tell("y is an array over processes, so sizes are those of all" in e.__notes__[0])
        """,
    )
    assert ended.status == 0, ended.output
    for me in (0, 1):
        lane = str([[[0.0, 2.0]], [[2.0, 6.0]]][me])
        assert ended.told[me] == ["True"] * 6 + [lane, "[2.0, 4.0]", "True"], ended.output


def test_what_a_process_moved_before_a_call_stays_though_it_is_donated(launch):
    ended = launch(
        2,
        """
        for rows in [(2, 2), (4, 6)]:
            f = phalanx.pmap(lambda x: x + lax.psum(x, "i"), "i", donate_argnums=0)
            x = jnp.ones((rows[me], 3))
            dealt = f(x)
            again = f(dealt)
            tell(x.is_deleted(), dealt.is_deleted(), again[0, 0])
            if not x.is_deleted():
                tell(np.asarray(x).sum() == 3 * rows[me])
        """,
        devices=2,
    )
    assert ended.status == 0, ended.output
    # 4 rows are 3 and 1 where another has 6 on as many devices: process 0 makes a padded copy
    assert ended.told == {
        0: ["False True 25.0", "True", "False False 121.0", "True"],
        1: ["False True 25.0", "True", "False True 121.0", "True"],
    }


def test_what_processes_do_with_values_that_are_not_spread(launch):
    ended = launch(
        2,
        """
        from phalanx.experimental import multihost_utils as utils
        tell(utils.process_allgather({"a": np.arange(2) + me})["a"].tolist())
        tell(utils.process_allgather(np.arange(2) + me, tiled=True).tolist())
        tell(utils.broadcast_one_to_all(me + 5), utils.broadcast_one_to_all(me, is_source=me == 1))
        tell(utils.process_allgather(np.array([1e300]))[me, 0], utils.broadcast_one_to_all(1e300))
        utils.sync_global_devices("here")
        utils.assert_equal({"step": 3})
        try:
            utils.assert_equal({"step": me}, "one step for all")
        except AssertionError as e:
            tell(e)
        mesh = Mesh(np.array(phalanx.devices()), ("d",))
        x = utils.host_local_array_to_global_array(np.arange(4.0) + 10 * me, mesh, P("d"))
        x_of_all = utils.process_allgather(x).tolist()
        assert utils.host_local_array_to_global_array(x, mesh, P("d")) is x
        tell(x.shape, x_of_all)
        tell(utils.global_array_to_host_local_array(x, mesh, P("d")).tolist())
        tell(utils.global_array_to_host_local_array(x, mesh, P()).tolist() == x_of_all)
        with phalanx.disable_jit():
            tell(utils.process_allgather(x).tolist() == x_of_all)
        key = phalanx.random.key(me)
        tell(utils.broadcast_one_to_all({"key": key, "x": x})["key"] == phalanx.random.key(0))
        tell(utils.process_allgather(key)[me] == key)
        utils.assert_equal({"x": x, "key": phalanx.random.key(7)})
        try:
            utils.process_allgather({"a": 1, "b": np.zeros(2 + me)})
        except phalanx.errors.ProgramMismatch as e:
            tell(e)
        for step in range(10_000):
            if utils.reached_preemption_sync_point(step):
                tell("all save", utils.process_allgather(step).tolist() == [step, step])
                break
            if step == 3 and me == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.001 * (1 + me))
        try:
            utils.sync_global_devices(f"place {me}")
        except phalanx.errors.ProgramMismatch as e:
            tell(e)
        """,
        devices=2,
    )
    assert ended.status == 0, ended.output
    for me in (0, 1):
        told = iter(ended.told[me])
        assert next(told) == "[[0, 1], [1, 2]]"
        assert next(told) == "[0, 1, 1, 2]"
        assert next(told) == "5 1"
        assert next(told) == "1e+300 1e+300"
        assert next(told).startswith("one step for all: leaf 0 in process 1, int64[]")
        assert next(told) == f"(8,) {[0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]}"
        assert next(told) == str([10.0 * me + n for n in range(4)])
        assert [next(told) for _ in range(4)] == ["True"] * 4
        assert "tree['b'] is f64[2] in process 0, and f64[3] in process 1" in next(told)
        assert next(told) == "all save True"
        assert "is at: sync_global_devices('place 0')" in next(told)
