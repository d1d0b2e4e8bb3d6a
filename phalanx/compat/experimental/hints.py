"""What compilers may be told besides what to compute: here they decide by themselves.

Values are the same without, so programs that tell them run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Any

__all__ = [
    "fuse_limit", "must_fuse_call", "scheduling_group", "set_xla_metadata", "xla_metadata_call",
    "xla_metadata_call2",
]  # fmt: skip


@contextlib.contextmanager
def _block() -> Generator[None]:
    yield


def _as_it_is(f: Any) -> Any:
    return f


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """``x``, a value or a function; without it a context manager, or decorator."""
    return _block() if x is None else x


def fuse_limit() -> Any:
    """A context manager, or decorator."""
    return _block()


def scheduling_group(name: str) -> Any:
    """A context manager, or decorator."""
    return _block()


def must_fuse_call(identifier: str) -> Callable[[Any], Any]:
    """A decorator that leaves functions as they are."""
    return _as_it_is


def xla_metadata_call(f: Any = None, /, **meta: Any) -> Any:
    """``f``; without it a decorator that leaves functions as they are."""
    return f or _as_it_is


def xla_metadata_call2(
    f: Any = None, /, metadata: Mapping[str, Any] | None = None, *, ad_metadata: Any = "same"
) -> Any:
    """``f``; without it a decorator that leaves functions as they are."""
    return f or _as_it_is
