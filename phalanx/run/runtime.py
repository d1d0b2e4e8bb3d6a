"""The socket for the backend: whoever assembles Phalanx plugs one in."""

from __future__ import annotations

from phalanx.run.backend import Backend
from phalanx.spmd.pickled import find_among

_connected: list[Backend] = []


def connect(backend: Backend) -> None:
    """Let everything run on ``backend``."""
    _connected[:] = [backend]
    find_among(backend.devices)


def backend() -> Backend:
    """The backend that is connected."""
    return _connected[0]
