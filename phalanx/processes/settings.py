"""What a process has to know to reach the coordinator."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from msgspec import Struct

from phalanx.processes.wire import split

if TYPE_CHECKING:
    from phalanx.processes.secure import Credentials, Seal


class Settings(Struct, frozen=True):
    """What a process has to know to join the others."""

    address: str
    process: int
    count: int
    token: str = ""
    patience: float = 300.0
    credentials: Credentials | None = None
    silence: float = 100.0  # after which a process counts as lost, in seconds
    attempt: int = 0  # how often the program was started again before
    coordinator_process: int | None = None  # in which the coordinator is, if it is in one

    def connected(self, patience: float = 10.0) -> socket.socket:
        """A connection to the coordinator, on which nothing has been said, made in that time.

        Raises:
            OSError: there is nobody, or not in time.
        """
        return socket.create_connection(split(self.address), timeout=patience)

    def seal(self) -> Seal | None:
        """What TLS makes of such a connection, if it is to be spoken on it."""
        host, _ = split(self.address)
        return None if self.credentials is None else self.credentials.call(host)
