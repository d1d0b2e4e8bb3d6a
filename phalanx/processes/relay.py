"""The way of the runtime's own messages: through the connection that the coordinator accepts.

The runtime's coordination service and its clients neither know who is calling nor live without
each other: a client ends its process as soon as its connection closes. So the service listens on a
socket in a folder of its user alone, and clients speak to one in a folder of theirs; what they say
is carried between these through connections that the coordinator has let in. When it is gone, a
client's connection stays open, and nobody answers.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from functools import partial

from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.threads import start

_LONGEST = 70  # bytes; with those of the names in it, systems take 103 at most
Begun = Callable[[socket.socket], Line]  # on which it has been said what the connection is for


class Folder:
    """A folder for a socket, which other users cannot enter, of a path that is short enough."""

    def __init__(self) -> None:
        short = len(os.fsencode(tempfile.gettempdir())) <= _LONGEST
        self.path = tempfile.mkdtemp(prefix="phalanx-", dir=None if short else "/tmp")
        self.socket = os.path.join(self.path, "runtime")

    @property
    def address(self) -> str:
        """What the runtime calls the socket."""
        return f"unix:{self.socket}"

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Relay:
    """Carries what is said at ``address`` to where ``reach`` leads, as bytes.

    ``reach`` gives a connection, and ``begun`` one on which it is said what it is for.
    """

    def __init__(self, loop: EventLoop, reach: Callable[[], socket.socket], begun: Begun) -> None:
        self._loop, self._reach, self._begun = loop, reach, begun
        self._folder = Folder()
        self.address = self._folder.address
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self._folder.socket)
        self._listener.listen()
        loop.call(partial(loop.accept, self._listener, lambda sock: start(self._connect, sock)))

    def _connect(self, sock: socket.socket) -> None:
        try:
            there = self._reach()
        except OSError:
            _silent.append(sock)
            return
        self._loop.call(partial(self._carry, sock, there))

    def _carry(self, sock: socket.socket, reached: socket.socket) -> None:
        there = self._begun(reached)
        Line(self._loop, sock, on_end=there.close).carry_to(there)

    def close(self) -> None:
        """Accept no more; what is connected stays."""
        self._loop.call(partial(self._loop.dismiss, self._listener))
        self._folder.remove()


_silent: list[socket.socket] = []  # connections of the runtime, whose other ends are gone
