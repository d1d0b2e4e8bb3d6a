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

from phalanx.processes.apart import start
from phalanx.processes.wire import close


class Folder:
    """A folder for a socket, which other users cannot enter."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="phalanx-")
        self.socket = os.path.join(self.path, "runtime")

    @property
    def address(self) -> str:
        """What the runtime calls the socket."""
        return f"unix:{self.socket}"

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Relay:
    """Carries what is said at ``address`` to where ``reach`` leads, as bytes."""

    def __init__(self, reach: Callable[[], socket.socket]) -> None:
        self._reach = reach
        self._folder = Folder()
        self.address = self._folder.address
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self._folder.socket)
        self._listener.listen()
        start(self._accept)

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            try:
                there = self._reach()
            except OSError:
                _silent.append(here)
                continue
            start(pump, here, there, True)
            start(pump, there, here, False)

    def close(self) -> None:
        """Accept no more; what is connected stays."""
        close(self._listener)
        self._folder.remove()


_silent: list[socket.socket] = []  # connections of the runtime, whose other ends are gone


def pump(source: socket.socket, target: socket.socket, ends: bool) -> None:
    """Carry bytes until ``source`` ends; then end ``target`` too, if it ``ends`` with it."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass  # whichever is gone, nothing more is carried
    if ends:
        close(target)
    else:
        _silent.append(target)
