"""Memory that was freed goes back to the system."""

import ctypes
import platform
import subprocess
import sys

import pytest

from phalanx.base import malloc_trim

# In a process of its own: in one that ran other tests the blocks fill holes between what is used.
PROGRAM = """
from pathlib import Path
import phalanx
from phalanx.base import malloc_trim

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

trim_memory = {trim_memory}  # which is imported now, and needs memory of its own
blocks = [bytes(2000) for _ in range(50_000)]
above = max(blocks, key=id)
del blocks
before = resident()
trim_memory()
print(before - resident())
assert len(above) == 2000
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give back at once")
@pytest.mark.parametrize("trim_memory", ["malloc_trim.trim_memory", "phalanx.clear_caches"])
def test_what_lies_below_something_that_is_used(trim_memory):
    program = PROGRAM.format(trim_memory=trim_memory)
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert int(out.stdout) > 50, out.stderr


def test_where_the_c_library_cannot(monkeypatch):
    for library in (object(), None):
        monkeypatch.setattr(ctypes, "CDLL", lambda _, library=library: library)
        assert malloc_trim.trim_memory() is None
