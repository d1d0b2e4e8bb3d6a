"""The socket for the backend: whoever assembles Phalanx plugs one in."""

from __future__ import annotations

from collections.abc import Callable

from phalanx.run.backend import Backend
from phalanx.spmd.pickled import find_among

_connected: list[Backend] = []
_makes: list[Callable[[], Backend]] = []


def connect(make: Callable[[], Backend]) -> None:
    """Let everything run on the backend that ``make`` gives, which is called at the first use."""
    _makes[:] = [make]
    find_among(lambda: backend().devices())


def backend() -> Backend:
    """The backend that is connected."""
    if not _connected:
        _connected[:] = [_makes[0]()]
    return _connected[0]
