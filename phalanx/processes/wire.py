"""Messages between processes: one JSON object to a line. Nothing is unpickled.

A connection begins with one line of who is calling, and what for. Those that go on as plain bytes
read no further than its end.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from typing import Any

LONGEST = 64 << 20  # of a line, in bytes
FIRST = 1 << 16  # of the first, which anybody may send
PULSE = 0.5  # seconds between signs of life

Message = dict[str, Any]
Socket = Any  # one of the system's, or a ``secure.Sealed``


def said_first(sock: Socket, patience: float) -> Message:
    """The first message on a connection, of which nothing else is read; empty if there is none."""
    deadline = time.monotonic() + patience
    line = b""
    with contextlib.suppress(OSError):
        while not line.endswith(b"\n") and len(line) < FIRST:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            line += sock.recv(1) or b"\n"
            if not line.startswith(b"{"):
                break
    return _message(line)


def say(sock: Socket, **message: Any) -> None:
    """Send one message."""
    sock.sendall(json.dumps(message).encode() + b"\n")


class Line:
    """A connection on which messages go both ways, from any thread."""

    def __init__(self, sock: Socket) -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.nonsense = b""  # what came last, if it was no message
        self._read = bytearray()
        self._sending = threading.Lock()

    def send(self, **message: Any) -> bool:
        """Send a message; False if nobody is there any more."""
        try:
            with self._sending:
                say(self.socket, **message)
        except OSError:
            return False
        return True

    def receive(self) -> Message:
        """The next message; empty if there will be none, and then the connection is closed."""
        message, line = {}, b""
        with contextlib.suppress(OSError):  # closed by another thread
            line = self._line()
            message = _message(line)
        if not message:
            self.nonsense = line[:80]
            self._read.clear()
            self.socket.close()
        return message

    def _line(self) -> bytes:
        """The next line; what there is of it, if that is all or it is too long."""
        looked = 0
        while (end := self._read.find(b"\n", looked)) < 0 and len(self._read) < LONGEST:
            looked = len(self._read)
            data = self.socket.recv(1 << 16)
            if not data:
                break
            self._read += data
        line = bytes(self._read[: end + 1 or None])
        del self._read[: len(line)]
        return line

    def close(self) -> None:
        """End the connection, also for a thread that is receiving; that one then closes it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


def close(sock: Socket) -> None:
    """End a connection, also for threads that wait for it."""
    with contextlib.suppress(OSError):  # it has ended
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def _message(line: bytes) -> Message:
    try:
        message = json.loads(line) if line.endswith(b"\n") else {}
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


_ADDRESS = re.compile(r"(?:\[([^\[\]\s]+)\]|([^:\[\]/\s]+)):(\d+)", re.ASCII)


def split(address: str) -> tuple[str, int]:
    """The host and the port of an address.

    Raises:
        ValueError: it is not of the form host:port.

    >>> split("node1:1234"), split("[::1]:80")
    (('node1', 1234), ('::1', 80))
    """
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None or int(found[3]) > 65535:
        raise ValueError(
            f"an address is host:port, such as 10.0.0.1:8476 or [fd00::1]:8476, got {address!r}"
        )
    return found[1] or found[2], int(found[3])


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach ``host``."""
    return host in ("localhost", "::1") or host.startswith("127.")
