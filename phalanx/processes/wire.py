"""Messages between processes: one JSON object to a line. Nothing is unpickled.

A connection begins with one line of who is calling, and what for; some go on as plain bytes.
"""

from __future__ import annotations

import hmac
import json
import re
import socket
from typing import Any, cast

LONGEST = 64 << 20  # of a line, in bytes
FIRST = 1 << 16  # of the first, which anybody may send

Message = dict[str, Any]


def encoded(message: Message) -> bytes:
    """A message as the line that is sent."""
    return json.dumps(message).encode() + b"\n"


def message_of(line: bytes) -> Message:
    """The message that a line is; empty if it is none."""
    try:
        message: Any = json.loads(line) if line.endswith(b"\n") else {}
    except (ValueError, RecursionError):
        return {}
    return cast(Message, message) if isinstance(message, dict) else {}


_ADDRESS = re.compile(r"(?:\[([^\[\]\s]+)\]|([^:\[\]/\s]+)):(\d+)", re.ASCII)


def split(address: Any) -> tuple[str, int]:
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


def address_of(host: str, port: int) -> str:
    """The address of those.

    >>> address_of("::1", 80)
    '[::1]:80'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def family_of(host: str) -> socket.AddressFamily:
    """The kind of addresses that ``host`` is of, to listen there."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def is_secret(given: str, ours: str) -> bool:
    """Whether ``given`` is ours, in a time that says nothing of it."""
    texts = [text.encode(errors="surrogatepass") for text in (given, ours)]
    return hmac.compare_digest(*texts)


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach ``host``."""
    return host in ("localhost", "::1") or host.startswith("127.")
