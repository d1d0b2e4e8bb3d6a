"""C++'s standard output while processes connect, when Gloo has a line to say for each of them.

The standard output is for what programs print. So what C++ writes to ``std::cout`` meanwhile goes
where ``std::cerr`` writes: both are objects of the C++ library, which all that is loaded shares.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Generator
from contextlib import contextmanager

_SET = "_ZNSt9basic_iosIcSt11char_traitsIcEE5rdbufEPSt15basic_streambufIcS1_E"  # sets the buffer
_GET = "_ZNKSt9basic_iosIcSt11char_traitsIcEE5rdbufEv"  # gives it
_lock = threading.Lock()
_moved: list[int] = []  # the buffer of std::cout, once for each that has moved it


@contextmanager
def on_stderr() -> Generator[None]:
    """A block in which ``std::cout`` is written to the standard error."""
    streams = _streams()
    if streams is None:
        yield
        return
    cout, cerr = streams
    with _lock:
        own = _moved[0] if _moved else cout.buffer
        _moved.append(own)
        cout.write_to(cerr.buffer)
    try:
        yield
    finally:
        with _lock:
            _moved.pop()
            if not _moved:
                cout.write_to(own)


class _Stream:
    """An object of class ``std::ostream``, by its name in the library."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        start = ctypes.addressof(ctypes.c_char.in_dll(library, name))
        table = ctypes.c_void_p.from_address(start).value
        if not table:
            raise ValueError(f"{name} is not there yet: nothing that is loaded writes to it")
        offset = ctypes.c_ssize_t.from_address(table - 3 * ctypes.sizeof(ctypes.c_void_p)).value
        self._base = ctypes.c_void_p(start + offset)  # its virtual base, which has the buffer
        self._get, self._set = library[_GET], library[_SET]
        self._get.restype = self._set.restype = ctypes.c_void_p

    @property
    def buffer(self) -> int:
        """The address of what it writes to."""
        return self._get(self._base)

    def write_to(self, buffer: int) -> None:
        """Write to another one from now on."""
        self._set(self._base, ctypes.c_void_p(buffer))


@functools.cache
def _streams() -> tuple[_Stream, _Stream] | None:
    """``std::cout`` and ``std::cerr``; None where the runtime has another C++ library."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        return _Stream(library, "_ZSt4cout"), _Stream(library, "_ZSt4cerr")
    except (OSError, ValueError, AttributeError):
        return None
