"""A connection on which messages go both ways, and on which nobody waits to say something."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable

from phalanx.processes.apart import start
from phalanx.processes.wire import LONGEST, Message, Socket, encoded, message_of

_MOST = 1 << 30  # bytes that wait until the other end reads; then it does not read at all


class Line:
    """Messages on a connection, from any thread.

    What is said is kept until the other end takes it, by a thread of its own: so whoever says
    something to many is not held up by one that has stopped.
    """

    def __init__(self, sock: Socket) -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.longest = LONGEST  # of the messages that come, in bytes
        self.nonsense = b""  # what came last, if it was no message
        self.fault = ""  # why it was ended here, if the other end is the cause
        self.heard: Callable[[], None] = lambda: None  # called when something comes
        self._read = bytearray()
        self._changed = threading.Condition()
        self._unsent: deque[bytes] = deque()
        self._size = 0  # of them all
        self._ending = False
        self._writer = start(self._write)

    def send(self, **message: object) -> None:
        """Say a message; to nobody, if nobody is there any more."""
        self.post(encoded(message))

    def post(self, line: bytes) -> None:
        """Say a message that is encoded already."""
        with self._changed:
            if self._ending:
                return
            self._unsent.append(line)
            self._size += len(line)
            if self._size > _MOST:
                self.fault = f"it does not read what it is told, {self._size} bytes by now"
                self._ending = True
                self._shut()
            self._changed.notify()

    def _write(self) -> None:
        try:
            while line := self._next():
                self.socket.sendall(line)
        except OSError:
            pass  # nobody is there any more, as whoever receives learns
        with self._changed:
            self._ending = True
            self._unsent.clear()
        self._shut()

    def _next(self) -> bytes:
        """What is to be sent next; empty if nothing more is."""
        with self._changed:
            self._changed.wait_for(lambda: self._unsent or self._ending)
            if not self._unsent:
                return b""
            line = self._unsent.popleft()
            self._size -= len(line)
            return line

    def receive(self) -> Message:
        """The next message; empty if there will be none, and then the connection is closed."""
        message, line = {}, b""
        with contextlib.suppress(OSError):  # closed by another thread
            line = self._line()
            message = message_of(line)
        if not message:
            self.nonsense = line[:80]
            self._read.clear()
            self.close(0)
            self.socket.close()
        return message

    def _line(self) -> bytes:
        """The next line; what there is of it, if that is all or it is too long."""
        looked = 0
        while (end := self._read.find(b"\n", looked)) < 0 and len(self._read) < self.longest:
            looked = len(self._read)
            data = self.socket.recv(1 << 16)
            if not data:
                break
            self.heard()
            self._read += data
        line = bytes(self._read[: end + 1 or None])
        del self._read[: len(line)]
        return line

    def close(self, patience: float | None = None) -> None:
        """End the connection when all is sent, also for a thread that is receiving.

        Args:
            patience: for how many seconds to wait until it is, and to end it all the same then;
                None: not to wait.
        """
        with self._changed:
            self._ending = True
            self._changed.notify()
        if patience is not None:
            self._writer.join(patience)
            self._shut()

    def _shut(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
