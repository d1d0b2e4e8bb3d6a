"""Messages between processes: one JSON object to a line. Nothing is unpickled.

A connection begins with one line of who is calling, and what for. Those that go on as plain bytes
read no further than its end.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any

LONGEST = 64 << 20  # of a line, in bytes
PULSE = 0.5  # seconds between signs of life

Message = dict[str, Any]


def said_first(sock: socket.socket) -> Message:
    """The first message on a connection, of which nothing else is read; empty if there is none."""
    with sock.makefile("rb", buffering=0) as file:
        return _message(file.readline(LONGEST))


def say(sock: socket.socket, **message: Any) -> None:
    """Send one message."""
    sock.sendall(json.dumps(message).encode() + b"\n")


class Line:
    """A connection on which messages go both ways, from any thread."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self._file = sock.makefile("rb")
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
        message: Message = {}
        with contextlib.suppress(OSError, ValueError):  # closed by another thread
            message = _message(self._file.readline(LONGEST))
        if not message:
            self._file.close()
            self.socket.close()
        return message

    def close(self) -> None:
        """End the connection, also for a thread that is receiving; that one then closes it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


def close(sock: socket.socket) -> None:
    """End a connection, also for threads that wait for it."""
    with contextlib.suppress(OSError):  # it has ended
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def _message(line: bytes) -> Message:
    try:
        message = json.loads(line) if line.endswith(b"\n") else {}
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def split(address: str) -> tuple[str, int]:
    """The host and the port of an address.

    Raises:
        ValueError: it is not of the form host:port.

    >>> split("node1:1234"), split("[::1]:80")
    (('node1', 1234), ('::1', 80))
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"an address is host:port, such as 10.0.0.1:8476, got {address!r}")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach ``host``."""
    return host in ("localhost", "::1") or host.startswith("127.")
