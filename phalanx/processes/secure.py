"""Connections on which both ends show a certificate, and nobody else reads what is said.

Nobody waits for a connection, not even for its beginning: what TLS makes of the bytes is kept apart
from the socket that carries them.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any

FILES = ("mtls_cert_file", "mtls_key_file", "mtls_ca_file")
PREFIX = "mtls_peer_uri_prefix"


class Credentials:
    """What this process shows to others, and what they must show.

    Args:
        options: by the names of arguments of ``distributed.initialize``: the files of the
            certificate of this process and of its key, and that of the certificates to which
            others' must lead;
            and how a URI among the names in theirs must begin. Without that, the coordinator's
            certificate must have the name of its host.

    Raises:
        ValueError: something is missing, or is none of its kind.
        OSError: a file cannot be read.
    """

    def __init__(self, options: Mapping[str, str | None]) -> None:
        missing = [name for name in FILES if not options[name]]
        if missing:
            raise ValueError(f"mutual TLS needs {' and '.join(missing)}, too")
        self.prefix = options[PREFIX] or ""
        if self.prefix and not self.prefix.endswith("/"):
            raise ValueError(
                f"{PREFIX} must end with '/', so that no other name begins with it, got "
                f"{self.prefix!r}"
            )
        self._serving = self._context(ssl.PROTOCOL_TLS_SERVER, options)
        self._calling = self._context(ssl.PROTOCOL_TLS_CLIENT, options)
        self._calling.check_hostname = not self.prefix

    def call(self, host: str) -> Seal:
        """TLS for a connection to the coordinator at ``host``."""
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._calling.wrap_bio(coming, going, server_hostname=host)
        return Seal(tls, coming, going, self.prefix)

    def answer(self) -> Seal:
        """The same at the other end."""
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        return Seal(self._serving.wrap_bio(coming, going, server_side=True), coming, going,
                    self.prefix)  # fmt: skip

    def call_on(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        """TLS on a connection to ``host``, whose thread may wait.

        Raises:
            ssl.SSLError, ConnectionAbortedError: the ends do not take what they are shown.
        """
        return self._checked(self._calling.wrap_socket(sock, server_hostname=host))

    def answer_on(self, sock: socket.socket) -> ssl.SSLSocket:
        """The same at the other end."""
        return self._checked(self._serving.wrap_socket(sock, server_side=True))

    def _checked(self, sock: ssl.SSLSocket) -> ssl.SSLSocket:
        _check_names(sock.getpeercert() or {}, self.prefix)
        return sock

    @staticmethod
    def _context(end: Any, options: Mapping[str, str | None]) -> ssl.SSLContext:
        context = ssl.SSLContext(end)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        cert, key, ca = (os.fspath(options[name] or "") for name in FILES)
        for path in (cert, key, ca):
            open(path, "rb").close()  # the errors of what follows name no file
        try:
            context.load_verify_locations(ca)
        except ssl.SSLError as e:
            raise ValueError(f"mtls_ca_file {ca}: {e.reason or e}") from None
        try:
            context.load_cert_chain(cert, key)
        except ssl.SSLError as e:
            shown = f"mtls_cert_file {cert}, mtls_key_file {key}"
            raise ValueError(f"{shown}: {e.reason or e}") from None
        return context


class Seal:
    """TLS on a connection: what its bytes say, and in which bytes to say something.

    Attributes:
        is_ready: whether both ends know that they take what the other has shown.
    """

    def __init__(
        self, tls: ssl.SSLObject, coming: ssl.MemoryBIO, going: ssl.MemoryBIO, prefix: str
    ) -> None:
        self._tls, self._coming, self._going, self._prefix = tls, coming, going, prefix
        self._has_greeted = self.is_ready = False
        if not tls.server_side:
            self._greet()

    def outgoing(self) -> bytes:
        """What is to be sent."""
        return self._going.read()

    def sealed(self, data: bytes | memoryview) -> bytes:
        """The bytes by which to say ``data``."""
        self._tls.write(data)
        return self._going.read()

    def opened(self, data: bytes) -> bytes:
        """What is said by ``data``; the end of the connection, if that is empty.

        Raises:
            ConnectionAbortedError: the ends do not agree, or one is not who it should be.
        """
        if data:
            self._coming.write(data)
        else:
            self._coming.write_eof()
        try:
            if not self._has_greeted:
                self._greet()
            text = self._read() if self._has_greeted else b""
        except ssl.SSLError as e:
            raise ConnectionAbortedError(_text_of_refusal(e)) from None
        if self._has_greeted and not self.is_ready:
            if text[:1] == _TRUST:
                self.is_ready, text = True, text[1:]
            elif text or not data:
                raise ConnectionAbortedError("the other end does not take the certificate shown")
        return text

    def _greet(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        self._has_greeted = True
        _check_names(self._tls.getpeercert() or {}, self._prefix)
        if self._tls.server_side:
            self._tls.write(_TRUST)
            self.is_ready = True

    def _read(self) -> bytes:
        text = bytearray()
        while True:
            try:
                text += self._tls.read(1 << 16)
            except (ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return bytes(text)


def _text_of_refusal(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the other end: {error.verify_message.rstrip('.')}"
    why = str(error.reason or error).lower().replace("_", " ")
    return f"TLS, which both ends must speak: {why}"


_TRUST = b"+"  # what the end says that knows first whether both take what the other shows


def _check_names(shown: Mapping[str, Any], prefix: str) -> None:
    """Raise an error if no URI among the names in a certificate begins with ``prefix``."""
    names = [name for kind, name in shown.get("subjectAltName", ()) if kind == "URI"]
    if prefix and not any(name.startswith(prefix) for name in names):
        raise ConnectionAbortedError(
            f"the certificate of the other end is for {', '.join(names) or 'no URI'}, and not for "
            f"one that begins with {prefix}"
        )
