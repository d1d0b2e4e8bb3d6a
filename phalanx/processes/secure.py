"""Connections on which both ends show a certificate, and nobody else reads what is said.

Sockets of ``ssl`` cannot be read by one thread while another writes, so what TLS makes of the bytes
is kept apart from the socket that carries them.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Mapping
from typing import Any

from phalanx.processes.wire import Socket

FILES = ("mtls_cert_file", "mtls_key_file", "mtls_ca_file")
PREFIX = "mtls_peer_uri_prefix"


class Credentials:
    """What this process shows to others, and what they must show.

    Args:
        given: by the names of arguments of ``distributed.initialize``: the files of the certificate
            of this process and of its key, and that of the certificates to which others' must lead;
            and how a URI among the names in theirs must begin. Without that, the coordinator's
            certificate must have the name of its host.

    Raises:
        ValueError: something is missing, or is none of its kind.
        OSError: a file cannot be read.
    """

    def __init__(self, given: Mapping[str, str | None]) -> None:
        missing = [name for name in FILES if not given[name]]
        if missing:
            raise ValueError(f"mutual TLS needs {' and '.join(missing)}, too")
        self.prefix = given[PREFIX] or ""
        if self.prefix and not self.prefix.endswith("/"):
            raise ValueError(
                f"{PREFIX} must end with '/', so that no other name begins with it, got "
                f"{self.prefix!r}"
            )
        self._serving = self._context(ssl.PROTOCOL_TLS_SERVER, given)
        self._calling = self._context(ssl.PROTOCOL_TLS_CLIENT, given)
        self._calling.check_hostname = not self.prefix

    def call(self, sock: Socket, host: str) -> Sealed:
        """The connection to the coordinator at ``host``, with TLS spoken on it.

        Raises:
            ConnectionAbortedError: the ends do not agree, or one is not who it should be.
            OSError: the connection ends, or it takes too long.
        """
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._calling.wrap_bio(coming, going, server_hostname=host)
        return Sealed(sock, tls, coming, going, self.prefix)

    def answer(self, sock: Socket) -> Sealed:
        """The same at the other end."""
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._serving.wrap_bio(coming, going, server_side=True)
        return Sealed(sock, tls, coming, going, self.prefix)

    @staticmethod
    def _context(end: Any, given: Mapping[str, str | None]) -> ssl.SSLContext:
        context = ssl.SSLContext(end)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        cert, key, ca = (os.fspath(given[name] or "") for name in FILES)
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


class Sealed:
    """A socket by which both ends speak TLS; one thread may receive while others send."""

    def __init__(
        self,
        sock: Socket,
        tls: ssl.SSLObject,
        coming: ssl.MemoryBIO,
        going: ssl.MemoryBIO,
        prefix: str,
    ) -> None:
        self._socket, self._tls, self._coming, self._going = sock, tls, coming, going
        self._state = threading.Lock()
        self._sending = threading.Lock()
        try:
            self._greet()
            _check_names(self._tls.getpeercert() or {}, prefix)
            if tls.server_side:
                self.sendall(_TRUST)
            elif self.recv(1) != _TRUST:
                raise ConnectionAbortedError("the other end does not take the certificate shown")
        except ssl.SSLError as e:
            raise ConnectionAbortedError(_text_of_refusal(e)) from None

    def _greet(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self._flush()
                self._take()
            finally:
                self._flush()  # if it has failed, why

    def _flush(self) -> None:
        self._socket.sendall(self._going.read())

    def _take(self) -> None:
        """Wait for what comes."""
        data = self._socket.recv(1 << 16)
        with self._state:
            if data:
                self._coming.write(data)
            else:
                self._coming.write_eof()

    def recv(self, size: int) -> bytes:
        """What has come, ``size`` bytes at most; none at the end."""
        while True:
            try:
                with self._state:
                    return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._take()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def sendall(self, data: bytes) -> None:
        """Send all of ``data``."""
        with self._sending:
            with self._state:
                self._tls.write(data)
                sealed = self._going.read()
            self._socket.sendall(sealed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


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
