"""Memory that was freed goes back to the system."""

import ctypes
import platform
from pathlib import Path

import pytest

import phalanx
from phalanx.base import freed

MEGABYTES = 2**20


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 // MEGABYTES


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give back at once")
@pytest.mark.parametrize("give_back", [freed.give_back, phalanx.clear_caches])
def test_what_lies_below_something_that_is_used(give_back):
    blocks = [bytes(2000) for _ in range(50_000)]
    above = max(blocks, key=id)
    del blocks
    before = resident()
    give_back()
    assert before - resident() > 50
    assert len(above) == 2000


def test_where_the_c_library_cannot(monkeypatch):
    for library in (object(), None):
        monkeypatch.setattr(ctypes, "CDLL", lambda _, library=library: library)
        freed.give_back()
