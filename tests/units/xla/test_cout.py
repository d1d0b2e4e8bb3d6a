"""What C++ writes to its standard output goes to the standard error in a block."""

import subprocess
import sys

import pytest

from phalanx.xla import cout

PROGRAM = """
import ctypes
import phalanx
from phalanx.xla import cout

phalanx.devices()  # the runtime is loaded, which makes the streams
library = ctypes.CDLL("libstdc++.so.6")
write, flush = library["_ZNSo5writeEPKcl"], library["_ZNSo5flushEv"]
stream = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "_ZSt4cout")))


def say(text):
    write(stream, text, ctypes.c_long(len(text)))
    flush(stream)


say(b"a")
with cout.on_stderr():
    say(b"b")
    with cout.on_stderr():
        say(b"c")
    say(b"d")
first, second = cout.on_stderr(), cout.on_stderr()
first.__enter__()
second.__enter__()
first.__exit__(None, None, None)  # as in two threads
say(b"e")
second.__exit__(None, None, None)
say(b"f")
"""


def test_blocks_within_and_beside_others():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "af", "bcde")


@pytest.mark.parametrize("missing", ["the library", "the object"])
def test_another_library_is_left_alone(monkeypatch, missing):
    class Other:
        def __init__(self, name):
            if missing == "the library":
                raise OSError(name)

    monkeypatch.setattr(cout.ctypes, "CDLL", Other)
    cout._streams.cache_clear()
    with cout.on_stderr():
        assert cout._streams() is None
    cout._streams.cache_clear()
