"""What the host does besides the user's own Python, for those who record how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

recorders: list[Callable[[str], AbstractContextManager[object]]] = []
"""What is entered around each phase, by its name; the last one counts."""

_NOTHING = nullcontext()


def phase(name: str) -> AbstractContextManager[object]:
    """A block in which the host does what ``name`` says.

    >>> with phase("tracing"):
    ...     pass
    """
    return recorders[-1](name) if recorders else _NOTHING
