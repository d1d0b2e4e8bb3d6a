"""Which platforms there are, and what keeps the package jax out."""

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from phalanx.base.errors import ConfigError, DeviceError
from phalanx.xla import client


def test_devices(backend):
    assert backend.platform() == "cpu" and backend.process_count() == 1
    assert backend.process_index() == 0
    devices = backend.devices()
    assert backend.devices("cpu") == devices == backend.local_devices()
    assert [d.id for d in devices] == list(range(len(devices)))
    assert repr(devices[0]) == "CpuDevice(id=0)"


@pytest.mark.parametrize("platform", ["gpu", "cuda", "tpu"])
def test_absent_accelerators(backend, platform):
    try:
        found = backend.devices(platform)
    except DeviceError as e:
        assert "not installed" in str(e) or "This machine has no" in str(e)
    else:
        assert found


def test_unknown_platforms(backend):
    with pytest.raises(DeviceError, match=r"Unknown backend 'cdua'\. Did you mean 'cuda'\?") as e:
        backend.devices("cdua")
    assert not isinstance(e.value, ValueError)  # which libraries take for a wrong argument


def test_the_number_of_devices_is_fixed_once_they_are_there(backend):
    from phalanx.base.config import config

    count = len(backend.devices("cpu"))
    with pytest.raises(ConfigError, match=f"has started with {count}\\."):
        config.update("num_cpu_devices", count + 1)


def test_a_platform_that_was_asked_for_and_is_absent():
    script = (
        "from phalanx.base.config import config; config.update('platforms', 'tpu,cuda')\n"
        "from phalanx.xla import XlaBackend\n"
        "print(*[d.platform for d in XlaBackend().devices()])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode:
        assert "DeviceError: Unable to initialize backend '" in done.stderr
    else:
        assert set(done.stdout.split()) <= {"tpu", "gpu"} and done.stdout.strip()


SCRIPT = """
import sys
import numpy as np
from phalanx.base.config import config
from phalanx.core.types import ArrayType
from phalanx.spmd.named import P
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla import XlaBackend
from phalanx.xla.lower import build

config.update("num_cpu_devices", 4)
backend = XlaBackend()
devices = backend.devices()
x = np.arange(8, dtype=np.float32)
t = ArrayType((8,), x.dtype)
rows, one, copies = Sharding(devices, (4,)), Sharding(devices[:1]), Sharding(devices)
plan = Plan(devices, (("m0", 4),), (P("m0"),), (None,))
(raw,) = backend.compile(build([t], [t], plan, lambda b, x: [b.add(x, x)]))(
    [backend.put(x, t, rows)]
)
for target in (one, copies, Sharding(devices[::-1], (4,))):
    moved = backend.move(raw, t, rows, target)
    assert (backend.fetch(moved, t, target) == 2 * x).all()
    assert len(backend.shards(moved, t, target)) == len(target.device_list)
backend.to_dlpack(backend.put(x, t, one))
backend.fetch(*(backend.from_dlpack(x, devices[0])), one)
assert "jax" not in sys.modules, "jax was imported"
"""


def test_jax_is_never_imported():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def in_a_process(script, **variables):
    counts = "PHALANX_NUM_CPU_DEVICES", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS"
    given = {n: v for n, v in os.environ.items() if n not in counts}
    command = [sys.executable, "-W", "always", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env={**given, **variables})
    assert done.returncode == 0, done.stderr
    return done


FORKS = """
import os, sys, phalanx, phalanx.numpy as jnp

def fork():
    if os.fork() == 0:
        os._exit(0)
    os.wait()

fork()
print("-- used --", file=sys.stderr)
jnp.ones(3)
fork(); fork()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_after_the_first_use_is_warned_of_once():
    before, after = in_a_process(FORKS).stderr.split("-- used --")
    assert "phalanx" not in before
    assert after.count("RuntimeWarning: os.fork: this process has used phalanx") == 1
    assert "multiprocessing.get_context('spawn')" in after


def test_flags_that_are_set_between_the_import_and_the_first_use_count(tmp_path):
    script = """if 1:
        import os, phalanx
        count = "--xla_force_host_platform_device_count"
        os.environ["XLA_FLAGS"] = f"{count}=3 --xla_dump_to=" + os.environ["DUMP"]
        print(phalanx.config.num_cpu_devices, phalanx.device_count())
        os.environ["XLA_FLAGS"] = f"{count}=5"
        print(phalanx.config.num_cpu_devices, phalanx.jit(lambda x: x + 1)(1))
    """
    assert in_a_process(script, DUMP=str(tmp_path)).stdout.split() == ["3", "3", "3", "2"]
    assert list(tmp_path.iterdir())  # the runtime has read them, too


@pytest.mark.parametrize("flags", [None, "--xla_cpu_enable_fast_math=false"])
def test_flags_of_ours_are_not_seen_by_who_reads_the_environment(monkeypatch, flags):
    if flags is None:
        monkeypatch.delenv("XLA_FLAGS", raising=False)
    else:
        monkeypatch.setenv("XLA_FLAGS", flags)
    seen = []

    class Options:
        def __init__(self):
            seen.append((os.environ.get("XLA_FLAGS"), of_process("XLA_FLAGS")))
            self.executable_build_options = SimpleNamespace(debug_options=None)

    monkeypatch.setattr(client.xc, "CompileOptions", Options)
    client._let_collectives_wait()
    ((by_python, by_xla),) = seen
    assert by_python == flags
    assert by_xla.startswith(flags or "") and "terminate_timeout_seconds=86400" in by_xla
    assert of_process("XLA_FLAGS") == flags


def of_process(name):
    """A variable as code in C sees it."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    value = getenv(name.encode())
    return None if value is None else value.decode()
