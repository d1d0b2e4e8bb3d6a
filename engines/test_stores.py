"""Checkpoints in the stores of others: an emulator of S3, one of GCS, and orbax."""

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from engines.programs import ROOT, environment, run, told, wait_for, write

RUN = """
import sys
import numpy as np
import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P
from phalanx.experimental import checkpoint

phalanx.distributed.initialize()
me, place = phalanx.process_index(), sys.argv[1]
mesh = phalanx.make_mesh((phalanx.device_count(),), ("x",))
rows = NamedSharding(mesh, P("x"))
values = np.arange(24.0, dtype=np.float32).reshape(8, 3)
lanes = phalanx.pmap(lambda x: x * 2)(values[phalanx.process_rows(8)])
state = {"w": phalanx.device_put(values, rows), "lanes": lanes, "step": 0}
with checkpoint.Manager(place, keep=2) as manager:
    for step in (1, 2, 3):
        manager.save(step, state | {"step": step})
    found = manager.restore(state)
tell(me, checkpoint.steps(place), found["step"], np.array_equal(found["lanes"], lanes))
parts = found["w"].addressable_shards
tell(me, all(np.array_equal(part.data, values[part.index]) for part in parts))
try:
    checkpoint.save(place, 3, state)
except FileExistsError as e:
    tell(me, "step 3 is saved already" in str(e))
"""
ORBAX = """
import jax
jax.distributed.initialize()
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

me = jax.process_index()
mesh = Mesh(np.array(jax.devices()), ("d",))
rows, whole = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
x = jax.make_array_from_process_local_data(rows, np.arange(4, dtype=np.float32) + 10 * me)
state = {"w": x, "b": jax.device_put(jnp.ones(3), whole)}
saver = ocp.StandardCheckpointer()
saver.save(os.path.dirname(os.path.abspath(__file__)) + "/orbax", state)
saver.wait_until_finished()
like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
found = saver.restore(os.path.dirname(os.path.abspath(__file__)) + "/orbax", like)
tell(me, [np.asarray(part.data).tolist() for part in found["w"].addressable_shards])
tell(me, jax.__spec__.origin, [np.asarray(p.data).tolist() for p in found["b"].addressable_shards])
"""
AWS = {
    "AWS_ACCESS_KEY_ID": "me",
    "AWS_SECRET_ACCESS_KEY": "mine",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return unused.getsockname()[1]


@pytest.fixture
def server(port):
    """Starts a server, and ends it."""
    started = []

    def start(*command):
        started.append(subprocess.Popen([*command], env=environment(), stderr=subprocess.DEVNULL))
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/"))

    yield start
    for child in started:
        child.terminate()
        child.wait(30)


def answers(address):
    try:
        urllib.request.urlopen(address).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def ask(address, method, body=None):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, body, headers, method=method)
    urllib.request.urlopen(request).close()


def launch(script, *arguments, **given):
    """Run two processes."""
    command = [sys.executable, "-m", "phalanx", "launch", "-n", "2", str(script), *arguments]
    return run(command, **given)


def check_run(folder, address, **given):
    done = launch(write(folder, RUN), address, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert told(folder) == {str(me): ["[2, 3] 3 True", "True", "True"] for me in range(2)}


def test_two_processes_save_to_s3(server, port, tmp_path):
    server(sys.executable, "-m", "moto.server", "-p", str(port))
    ask(f"http://127.0.0.1:{port}/ours", "PUT")
    check_run(tmp_path, "s3://ours/runs/a", AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", **AWS)


def test_two_processes_save_to_gcs(server, port, tmp_path):
    command = f"{os.path.dirname(sys.executable)}/gcp-storage-emulator"
    server(command, "start", "--host=127.0.0.1", f"--port={port}", "--in-memory")
    address = f"http://127.0.0.1:{port}"
    ask(f"{address}/storage/v1/b?project=p", "POST", b'{"name": "ours"}')
    check_run(tmp_path, "gs://ours/runs/a", TENSORSTORE_GCS_HTTP_URL=address,
              GOOGLE_AUTH_TOKEN_FOR_TESTING="any")  # fmt: skip


def test_orbax_saves_and_restores(tmp_path):
    script = write(tmp_path, ORBAX)
    command = [sys.executable, "-m", "phalanx", "launch", "-n", "2", "-m", "phalanx.as_jax"]
    done = run([*command, str(script)], PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr
    for me in range(2):
        rows, whole = told(tmp_path)[str(me)]
        assert rows == str([[10.0 * me + row for row in range(4)]])
        assert whole == f"phalanx {[[1.0, 1.0, 1.0]]}"
