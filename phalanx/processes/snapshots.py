"""Snapshots in the memory of launchers, which outlive their processes.

Each launcher listens for HTTP. What it keeps are bytes under names, ``attempt.number/part``, for
the snapshots of an attempt are numbered in order. Who asks must know the secret of the
launch, and with certificates both ends speak TLS.
"""

from __future__ import annotations

import contextlib
import errno
import json
import re
import threading
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from phalanx.processes.threads import start
from phalanx.processes.wire import address_of, family_of, is_secret, split

if TYPE_CHECKING:
    from phalanx.processes.secure import Credentials

Number = tuple[int, int]  # of a snapshot: the attempt, and which one in that

_NUMBER = re.compile(r"\d{1,9}\.\d{1,9}", re.ASCII)
_NAME = re.compile(rf"{_NUMBER.pattern}/[\w.]{{1,64}}", re.ASCII)
_PATIENCE = 60.0  # seconds in which the other end must say or take something
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})", re.ASCII)


def number_of(name: str) -> Number:
    """The snapshot to which a name belongs.

    >>> number_of("0.12/3.data")
    (0, 12)
    """
    attempt, _, number = name.partition("/")[0].partition(".")
    return int(attempt), int(number)


class SnapshotServer:
    """Keeps what processes give it, at ``host`` and a free port.

    Raises:
        OSError: it cannot listen there.
    """

    def __init__(self, host: str, token: str, credentials: Credentials | None = None) -> None:
        self._server = _Server(host, token, credentials)
        self.address = address_of(host, self._server.server_address[1])
        start(self._server.serve_forever)

    def close(self) -> None:
        """Listen no more, and keep nothing."""
        self._server.shutdown()
        self._server.server_close()
        self._server.parts.clear()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, host: str, token: str, credentials: Credentials | None) -> None:
        self.address_family = family_of(host)
        self.expected = _authorization(token)
        self.parts: dict[str, bytearray] = {}
        self.lock = threading.Lock()
        self._credentials = credentials
        super().__init__((host, 0), _Request)

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(_PATIENCE)
        if self._credentials is None:
            super().finish_request(request, client_address)
        else:
            with self._credentials.answer_on(request) as sealed:
                super().finish_request(sealed, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asks has gone, or was never one of the launch: nothing is lost by that."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _mine(self) -> _Server:
        assert isinstance(self.server, _Server)
        return self.server

    def log_message(self, format: str, *args: object) -> None:
        """What strangers ask for is not written among the lines of the program."""

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if not is_secret(self.headers.get("Authorization", ""), self._mine.expected):
            self._answer(HTTPStatus.UNAUTHORIZED)
            return False
        return True

    def do_GET(self) -> None:
        """The names of all that is kept, or some bytes of what has a name."""
        if self.path == "/":
            with self._mine.lock:
                names = [*self._mine.parts]
            self._answer(HTTPStatus.OK, json.dumps(names).encode())
            return
        data = self._mine.parts.get(self.path[1:])
        if data is None:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if asked is None:
            self._answer(HTTPStatus.OK, data)
        else:
            part = memoryview(data)[int(asked[1]) : int(asked[2]) + 1]
            self._answer(HTTPStatus.PARTIAL_CONTENT, part)

    def do_PUT(self) -> None:
        """Keep what comes under that name, when it has come as a whole."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or not _NAME.fullmatch(self.path[1:]):
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        try:
            data = bytearray(int(length))
        except (MemoryError, OverflowError):
            self._answer(HTTPStatus.INSUFFICIENT_STORAGE)
            return
        rest = memoryview(data)
        while rest:
            came = self.rfile.readinto(rest)  # type: ignore[attr-defined]
            if not came:
                return
            rest = rest[came:]
        with self._mine.lock:
            self._mine.parts[self.path[1:]] = data
        self._answer(HTTPStatus.OK)

    def do_DELETE(self) -> None:
        """Forget the snapshots before one."""
        if not _NUMBER.fullmatch(self.path[1:]):
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        with self._mine.lock:
            for name in [*self._mine.parts]:
                if number_of(name) < number_of(self.path[1:]):
                    del self._mine.parts[name]
        self._answer(HTTPStatus.OK)

    def _answer(self, status: HTTPStatus, body: bytes | bytearray | memoryview = b"") -> None:
        self.close_connection = status >= HTTPStatus.BAD_REQUEST  # what was sent is not read
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class SnapshotClient:
    """What the server at ``address`` has, for a process of the launch.

    Every method raises OSError if it is not there, or does not take what it is token.
    """

    def __init__(self, address: str, token: str, credentials: Credentials | None = None) -> None:
        self.address = address
        self._token, self._credentials = token, credentials

    def names(self) -> list[str]:
        """The names of all that is there."""
        return json.loads(self._ask("GET", ""))

    def get(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """The bytes under a name, or those from ``start`` to ``stop``."""
        some = {} if stop is None else {"Range": f"bytes={start}-{stop - 1}"}
        return b"" if stop is not None and stop <= start else self._ask("GET", name, some)

    def put(self, name: str, pieces: Sequence[memoryview | bytes]) -> None:
        """Keep the ``pieces``, one after the other, under a name."""
        size = sum(len(piece) for piece in pieces)
        self._ask("PUT", name, {"Content-Length": str(size)}, pieces)

    def forget_before(self, snapshot: str) -> None:
        """Forget the snapshots before one, as ``0.12``."""
        self._ask("DELETE", snapshot)

    def _ask(
        self, method: str, name: str, headers: dict[str, str] | None = None,
        body: Iterable[memoryview | bytes] | None = None,
    ) -> bytes:  # fmt: skip
        fields = {"Authorization": _authorization(self._token), **(headers or {})}
        host, port = split(self.address)
        with contextlib.closing(HTTPConnection(host, port, timeout=_PATIENCE)) as connection:
            try:
                connection.connect()
                if self._credentials is not None:
                    connection.sock = self._credentials.call_on(connection.sock, host)
                connection.request(method, f"/{name}", body, fields)
                return _body(connection.getresponse(), self.address)
            except HTTPException as e:
                why = f"the launcher at {self.address} says what is not understood: {e!r}"
                raise OSError(errno.EPROTO, why) from None


def _authorization(token: str) -> str:
    """What tells of the secret, in ASCII, as fields of HTTP are."""
    return f"Bearer {json.dumps(token)}"


def _body(response: HTTPResponse, address: str) -> bytes:
    data = response.read()
    if response.status < HTTPStatus.BAD_REQUEST:
        return data
    number = _MEANING.get(HTTPStatus(response.status), errno.EPROTO)
    raise OSError(number, f"the launcher at {address} answers {response.status} {response.reason}")


_MEANING = {
    HTTPStatus.UNAUTHORIZED: errno.EACCES,
    HTTPStatus.NOT_FOUND: errno.ENOENT,
    HTTPStatus.INSUFFICIENT_STORAGE: errno.ENOMEM,
}
