"""A connection on which messages go both ways, and on which nobody waits to say something."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING

from phalanx.processes.loop import EventLoop
from phalanx.processes.wire import LONGEST, Message, encoded, message_of

if TYPE_CHECKING:
    from phalanx.processes.secure import Seal

_MOST = 1 << 30  # bytes that wait until the other end reads; then it does not read at all
_PIECE = 1 << 18  # bytes that are sealed at a time
_FAREWELL = 1.0  # seconds in which the other end reads what was said last
_AHEAD = 1 << 20  # bytes that are carried to a connection before it takes them


class Line:
    """Messages on a connection, which the thread of a ``loop`` reads and writes.

    What is said is kept until the other end takes it: so whoever says something to many is not
    held up by one that has stopped.

    Attributes:
        on_message: called, in that thread, with each message.
        on_end: called when there will be none any more.
    """

    def __init__(
        self,
        loop: EventLoop,
        sock: socket.socket,
        seal: Seal | None = None,
        on_message: Callable[[Message], object] = lambda message: None,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.host = _host(sock)  # of the other end
        self.on_message, self.on_end = on_message, on_end
        self.on_life: Callable[[], object] = lambda: None  # called when something comes
        self.longest = LONGEST  # of the messages that come, in bytes
        self.nonsense = b""  # what came last, if it was no message
        self.fault = ""  # why it was ended here, if the other end is the cause
        self.is_over = False
        self._loop, self._seal = loop, seal
        self._onto: Line | None = None  # where bytes are carried to, in place of messages
        self._unread = bytearray()
        self._looked = 0  # bytes of it, in which no message ends
        self._unsent: deque[bytes | memoryview] = deque()
        self._going: bytes | memoryview = b""  # what is being sent
        self._size = 0  # of them all
        self._events = 0  # for which the loop watches
        self._ending = self._is_full = False
        self._sent = threading.Event()  # all, when it is ending
        loop.call(self._attend if seal is None else self._flush)

    # ---- what is said ----

    def send(self, **message: object) -> None:
        """Say a message; to nobody, if nobody is there any more."""
        self.post(encoded(message))

    def post(self, data: bytes) -> None:
        """Say a message that is encoded already, or carry bytes."""
        if self._loop.is_here:
            self._post(data)
        else:
            self._loop.call(partial(self._post, data))

    def _post(self, data: bytes) -> None:
        if self._ending or self.is_over:
            return
        self._unsent.append(data)
        self._size += len(data)
        if self._size > _MOST:
            self.end(f"it does not read what it is told, {self._size} bytes by now")
        elif len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        """Send what can be sent now."""
        try:
            while self._going or self._take_next():
                sent = self.socket.send(self._going)
                self._going = memoryview(self._going)[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.end()
        if self._ending and not (self._going or self._unsent):
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
            self._sent.set()
        self._attend()

    def _take_next(self) -> bool:
        """Whether there is something more to be sent."""
        if self._seal is not None and (data := self._seal.outgoing()):
            self._going = data  # by TLS itself
            return True
        if not self._unsent or (self._seal is not None and not self._seal.is_ready):
            return False
        piece = self._unsent.popleft()
        if self._seal is not None:
            if len(piece) > _PIECE:
                self._unsent.appendleft(memoryview(piece)[_PIECE:])
            piece = piece[:_PIECE]
        self._size -= len(piece)
        self._going = piece if self._seal is None else self._seal.sealed(piece)
        return True

    # ---- what comes ----

    def _attend(self) -> None:
        if self.is_over:
            return
        self._is_full = self._onto is not None and self._onto._size > _AHEAD
        can_speak = self._seal is None or self._seal.is_ready
        writing = bool(self._going or (self._unsent and can_speak))
        events = EVENT_READ * (not self._is_full) | EVENT_WRITE * writing
        if events != self._events:
            self._events = events
            self._loop.watch(self.socket, events, self._ready)
        if self._onto is not None and self._onto._is_full and self._size <= _AHEAD:
            self._onto._attend()

    def _ready(self, events: int) -> None:
        if events & EVENT_READ and not self.is_over:
            self._receive()
        if events & EVENT_WRITE and not self.is_over:
            self._flush()

    def _receive(self) -> None:
        try:
            data = self._loop.received(self.socket)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.on_life()
        over = not data
        if self._seal is not None:
            try:
                data = self._seal.opened(data)
            except ConnectionAbortedError as e:
                self._flush()
                self.end(str(e))
                return
            self._flush()
        if data and not self._ending:
            self._take(data)
        if over:
            self.nonsense = self.nonsense or bytes(self._unread[:80])
            self.end()

    def _take(self, data: bytes) -> None:
        if self._onto is not None:
            self._carry(data)
            return
        self._unread += data
        while (end := self._unread.find(b"\n", self._looked)) >= 0 and end < self.longest:
            line = bytes(self._unread[: end + 1])
            del self._unread[: end + 1]
            self._looked = 0
            message = message_of(line)
            if not message:
                self._refuse(line)
                return
            self.on_message(message)
            if self.is_over or self._ending:
                return
            if self._onto is not None:
                self._carry(bytes(self._unread))
                return
        self._looked = len(self._unread)
        nothing = not self._unread.startswith(b"{"[: self._looked])  # of which a message begins
        if self._looked > self.longest or end >= 0 or nothing:
            self._refuse(self._unread)

    def _refuse(self, data: bytes | bytearray) -> None:
        self.nonsense = bytes(data[:80])
        self.end()

    def carry_to(self, other: Line) -> None:
        """From now on carry what comes here to ``other``, as bytes, and the reverse."""
        self._onto, other._onto = other, self
        for line in (self, other):
            line._attend()

    def _carry(self, data: bytes) -> None:
        if self._onto is not None and data:
            self._onto.post(data)
            self._attend()

    # ---- the end ----

    def close(self, patience: float | None = None) -> None:
        """End the connection when all is sent.

        Args:
            patience: for how many seconds another thread waits until it is; None: not to wait.
        """
        self._loop.call(self._finish)
        if patience is not None:
            self._sent.wait(patience)

    def _finish(self) -> None:
        if not self._ending:
            self._ending = True
            self._loop.later(_FAREWELL, self.end)  # what comes meanwhile does not matter
            self._flush()

    def end(self, fault: str = "") -> None:
        """End it at once, for a ``fault`` of the other end, if there is one."""
        if self.is_over:
            return
        self.is_over = True
        self.fault = self.fault or fault
        self._loop.watch(self.socket, 0)
        self.socket.close()
        self._unsent.clear()
        self._unread.clear()
        self._sent.set()
        self._loop.call(self.on_end)


def _host(sock: socket.socket) -> str:
    try:
        name = sock.getpeername()
    except OSError:  # it has gone
        return "an unknown address"
    return name[0] if name else ""
