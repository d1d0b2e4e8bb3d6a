"""Breaking the connections on which processes exchange arrays, so that nothing waits on them.

What waits in a collective of Gloo waits in the runtime, where no signal reaches it: for a process
that is gone, or for one that waits for it. Nobody wakes it but its sockets. They are told from all
others of this process by the addresses at which the processes listen for each other.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator

Address = tuple[str, int]


class Connections:
    """The connections of this process to others and itself at those addresses."""

    def __init__(self) -> None:
        self.listening: set[Address] = set()

    def sever(self) -> None:
        """End all of them, whoever reads or writes."""
        for sock in _sockets():
            with contextlib.suppress(OSError):
                ends = {sock.getsockname()[:2], sock.getpeername()[:2]}
                if ends & self.listening:
                    sock.shutdown(socket.SHUT_RDWR)


def listening() -> set[Address]:
    """Where this process accepts connections."""
    found = set()
    for sock in _sockets():
        with contextlib.suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.add(sock.getsockname()[:2])
    return found


def _sockets() -> Iterator[socket.socket]:
    """The sockets of this process that speak to hosts, each as a copy of its own."""
    for name in os.listdir("/dev/fd"):
        try:
            copy = os.dup(int(name))
        except OSError:
            continue
        if not stat.S_ISSOCK(os.fstat(copy).st_mode):
            os.close(copy)
            continue
        with socket.socket(fileno=copy) as sock:
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                yield sock
