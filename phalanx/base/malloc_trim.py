"""Memory that was freed goes back to the system.

The C library keeps what a process frees, in pieces between what is still used, and a process that
compiled many programs holds hundreds of megabytes so. glibc gives it back when asked.
"""

from __future__ import annotations

import contextlib
import ctypes


def trim_memory() -> None:
    """Give back to the system what was freed, where the C library can."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # musl, macOS; and Windows
        ctypes.CDLL(None).malloc_trim(0)
