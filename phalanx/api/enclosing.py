"""Which function that divides the devices, a ``pmap`` or a ``shard_map``, is being traced."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_enclosing: ContextVar[str | None] = ContextVar("enclosing pmap or shard_map", default=None)


@contextmanager
def inside(who: str) -> Generator[None]:
    """While the body of ``who`` is traced."""
    token = _enclosing.set(who)
    try:
        yield
    finally:
        _enclosing.reset(token)


def enclosing() -> str | None:
    """The innermost one whose body is being traced, if there is any."""
    return _enclosing.get()
