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
from collections.abc import Callable, Iterator, Set
from typing import Any

Address = tuple[str, int]


def sever(listening: Set[Address], within: bool) -> None:
    """End what this process receives on connections to and at addresses that are ``listening``.

    Also on those on which it speaks to itself, if ``within``. What is sent goes on: Gloo does not
    notice if a connection breaks while it sends, and the sender would wait forever.
    """
    here = {name for sock in _sockets() if (name := _name(sock.getsockname)) is not None}
    for sock in _sockets():
        own, other = _name(sock.getsockname), _name(sock.getpeername)
        if other is None:
            continue  # it listens, or is not connected
        if {own, other} & listening and (within or other not in here):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RD)


def listening() -> set[Address]:
    """Where this process accepts connections."""
    return {
        name
        for sock in _sockets()
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        and (name := _name(sock.getsockname)) is not None
    }


def _name(asked: Callable[[], Any]) -> Address | None:
    """What a socket tells of an end of it; None if that has no name."""
    try:
        return asked()[:2]
    except OSError:
        return None


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
