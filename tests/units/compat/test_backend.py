"""Which clients have started is told without starting one."""

import subprocess
import sys


def test_clients_that_have_started():
    program = """
from phalanx.compat.extend.backend import _backends, get_backend

assert not _backends and _backends.get("cpu") is None, "to ask starts none"
client = get_backend("cpu")
assert dict(_backends) == {"cpu": client} and "tpu" not in _backends
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
